package app

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropPages drops pages that are the same in their file: of the executable, and of the
// text of the libraries it is linked with, which nothing in mcpx unloads.
func dropPages() {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer func() { _ = smaps.Close() }()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	var from, to uint64
	canDrop := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		switch fields := strings.Fields(lines.Text()); {
		case len(fields) == 6 && strings.Contains(fields[0], "-"): // the header of a region
			low, high, _ := strings.Cut(fields[0], "-")
			from, _ = strconv.ParseUint(low, 16, 64)
			to, _ = strconv.ParseUint(high, 16, 64)
			canDrop = strings.HasPrefix(fields[5], "/") && (fields[1] == "r-xp" || fields[1] == "r--p" && fields[5] == self)
		case len(fields) < 2:
		case fields[0] == "Anonymous:" && fields[1] != "0": // a loader has written to it
			canDrop = false
		case fields[0] == "Swap:" && fields[1] == "0" && canDrop:
			// If this fails the pages stay, which does no harm.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_DONTNEED)
		}
	}
}
