package app

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestDroppable(t *testing.T) {
	const smaps = `00400000-00404000 r-xp 00000000 fd:00 17 /bin/prog
Rss:                  16 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
00404000-00405000 r--p 00004000 fd:00 17 /bin/prog
Anonymous:             4 kB
Swap:                  0 kB
00405000-00409000 r--p 00005000 fd:00 17 /bin/prog
Anonymous:             0 kB
Swap:                  0 kB
00409000-0040a000 rw-p 00009000 fd:00 17 /bin/prog
Anonymous:             0 kB
Swap:                  0 kB
0040a000-0040b000 r--p 0000a000 fd:00 17 /bin/prog
Anonymous:             0 kB
Swap:                  4 kB
7f0000000000-7f0000001000 r-xp 00000000 fd:00 18 /lib/libc.so
Anonymous:             0 kB
Swap:                  0 kB
7f0000001000-7f0000002000 r--p 00001000 fd:00 18 /lib/libc.so
Anonymous:             0 kB
Swap:                  0 kB
7f0000002000-7f0000003000 r-xp 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
7f0000004000-7f0000005000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
Swap:                  0 kB
`
	got := droppable(strings.NewReader(smaps), "/bin/prog")
	if want := []region{{0x400000, 0x404000}, {0x405000, 0x409000}, {0x7f0000000000, 0x7f0000001000}}; !slices.Equal(got, want) {
		t.Errorf("regions %x, want %x", got, want)
	}
}

// TestDropPages: less of the program is in memory, and it still runs.
func TestDropPages(t *testing.T) {
	before := fileRSS(t)
	dropPages()
	if after := fileRSS(t); after > before*9/10 {
		t.Errorf("%d kB of files in memory, %d before", after, before)
	}
}

func fileRSS(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "RssFile:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
