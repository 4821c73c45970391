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

// unchanging are the regions that dropPages drops: of those that the process
// started with, what holds nothing but what its file has.
var unchanging = sync.OnceValue(func() []region {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil
	}
	defer func() { _ = smaps.Close() }()
	return unchanged(smaps, files())
})

// files are the regions of files that cannot be written to: of the program's own,
// and the text of others. They are looked for when the process starts, since what
// is loaded later may be gone again, and something else in its place, when its
// pages are dropped. What they hold is looked at later: that takes longer.
var files = sync.OnceValue(func() map[region]bool {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer func() { _ = maps.Close() }()
	return unwritable(maps, self)
})

func lookForPages() { files() }

// region is a part of the address space.
type region struct{ from, to uintptr }

// unwritable are the regions of the program's own file that cannot be written to,
// and those of others that are text.
func unwritable(maps io.Reader, self string) map[region]bool {
	regions := map[region]bool{}
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 6 || !strings.HasPrefix(fields[5], "/") {
			continue
		}
		if strings.HasPrefix(fields[1], "r-x") || fields[5] == self && strings.HasPrefix(fields[1], "r-") {
			regions[parseRegion(fields[0])] = true
		}
	}
	return regions
}

// unchanged are those of the regions that hold nothing but what their file has: a
// loader may have written before it forbade it.
func unchanged(smaps io.Reader, among map[region]bool) (regions []region) {
	var current region
	candidate := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2:
		case strings.Contains(fields[0], "-"): // a region begins
			current = parseRegion(fields[0])
			candidate = among[current]
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
