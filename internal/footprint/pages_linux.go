package footprint

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// dropPages drops the pages of the text and constants of the program, and of the
// text of the libraries it may be linked with.
func dropPages() {
	for _, r := range unchanging() {
		// Where it fails the pages stay, which harms nothing.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, r.from, r.to-r.from, unix.MADV_DONTNEED)
	}
}

// unchanging are the regions that dropPages drops. They are looked for once, when
// the process starts: what is loaded later may be gone again, and something else
// in its place, when its pages are dropped.
var unchanging = sync.OnceValue(func() []region {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil
	}
	defer func() { _ = maps.Close() }()
	return unchanged(maps, self)
})

func lookForPages() { unchanging() }

// region is a part of the address space.
type region struct{ from, to uintptr }

// unchanged are the regions of the program's own file that cannot be written to,
// and those of others that are text, as far as they hold nothing but what the file
// has: a loader may have written before it forbade it.
func unchanged(smaps io.Reader, self string) (regions []region) {
	var current region
	candidate := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2:
		case strings.Contains(fields[0], "-"): // a region begins
			current = parseRegion(fields[0])
			isFile := len(fields) == 6 && strings.HasPrefix(fields[5], "/") && current.to > current.from
			candidate = isFile && (strings.HasPrefix(fields[1], "r-x") || fields[5] == self && strings.HasPrefix(fields[1], "r-"))
		case fields[0] == "Anonymous:" && fields[1] != "0":
			candidate = false
		case fields[0] == "Swap:" && fields[1] == "0" && candidate: // it comes later
			regions = append(regions, current)
		}
	}
	return regions
}

func parseRegion(s string) region {
	low, high, _ := strings.Cut(s, "-")
	from, _ := strconv.ParseUint(low, 16, 64)
	to, _ := strconv.ParseUint(high, 16, 64)
	return region{uintptr(from), uintptr(to)}
}
