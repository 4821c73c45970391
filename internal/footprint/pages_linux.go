package footprint

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropPages drops the pages of the text and constants of the program, and of the
// libraries it may be linked with.
func dropPages() {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer func() { _ = maps.Close() }()
	for _, r := range unchanged(maps) {
		// Where it fails the pages stay, which harms nothing.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, r.from, r.to-r.from, unix.MADV_DONTNEED)
	}
}

// region is a part of the address space.
type region struct{ from, to uintptr }

// unchanged are the regions of files that cannot be written to and hold nothing but
// what the file has: a loader may have written before it forbade it.
func unchanged(smaps io.Reader) (regions []region) {
	var current region
	candidate := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2:
		case strings.Contains(fields[0], "-"): // a region begins
			current = parseRegion(fields[0])
			candidate = len(fields) == 6 && strings.HasPrefix(fields[5], "/") && strings.HasPrefix(fields[1], "r-") && current.to > current.from
		case fields[0] == "Anonymous:" && fields[1] == "0" && candidate:
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
