package app

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

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
