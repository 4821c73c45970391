package app

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// dropPages drops pages of the executable and of the libraries it is linked with, which
// nothing in mcpx unloads.
func dropPages() {
	for _, r := range ownRegions() {
		// If this fails the pages stay, which does no harm.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, r.from, r.to-r.from, unix.MADV_DONTNEED)
	}
}

// ownRegions returns the regions whose pages can be dropped. They do not change.
var ownRegions = sync.OnceValue(func() []region {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil
	}
	defer func() { _ = smaps.Close() }()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	return droppable(smaps, self)
})

// region is a part of the address space.
type region struct{ from, to uintptr }

// droppable returns the regions whose pages are the same in a file: of the executable
// self, and the text of others. A region with anonymous pages was changed by the loader.
func droppable(smaps io.Reader, self string) (regions []region) {
	var current region
	canDrop := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		switch fields := strings.Fields(lines.Text()); {
		case len(fields) < 2:
		case strings.Contains(fields[0], "-"): // a region begins
			low, high, _ := strings.Cut(fields[0], "-")
			from, _ := strconv.ParseUint(low, 16, 64)
			to, _ := strconv.ParseUint(high, 16, 64)
			current = region{uintptr(from), uintptr(to)}
			isFile := len(fields) == 6 && strings.HasPrefix(fields[5], "/")
			canDrop = isFile && (fields[1] == "r-xp" || fields[1] == "r--p" && fields[5] == self)
		case fields[0] == "Anonymous:" && fields[1] != "0":
			canDrop = false
		case fields[0] == "Swap:" && fields[1] == "0" && canDrop: // it comes after Anonymous
			regions = append(regions, current)
		}
	}
	return regions
}
