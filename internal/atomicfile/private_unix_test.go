//go:build unix

package atomicfile

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestPrivate: permissions that are too wide are repaired and reported; anything that is not a
// file of the user is refused.
func TestPrivate(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	write := func(name string, mode os.FileMode) {
		if err := os.WriteFile(in(name), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(in(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("own", 0o600)
	write("readable", 0o644)
	write("writable", 0o666)
	if err := os.Symlink(in("own"), in("link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(in("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		repaired bool
		err      string
	}{
		"own":      {},
		"readable": {repaired: true},
		"writable": {repaired: true},
		"link":     {err: "not a regular file"},
		"pipe":     {err: "not a regular file"},
		"none":     {err: "no such file"},
	} {
		told := ""
		data, err := ReadPrivate(in(name), 10, func(path string) { told += path })
		switch {
		case row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)):
			t.Errorf("%s: %v, want %q", name, err, row.err)
		case row.err == "" && (err != nil || string(data) != "text"):
			t.Errorf("%s: %q, %v", name, data, err)
		case row.repaired != (told == in(name)):
			t.Errorf("%s: repaired %q", name, told)
		}
		if info, err := os.Stat(in(name)); row.err == "" && (err != nil || info.Mode().Perm() != 0o600) {
			t.Errorf("%s has the mode %v", name, info.Mode())
		}
	}
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // on purpose
		t.Fatal(err)
	}
	told := 0
	for range 2 {
		if err := PrivateFolder(folder, func(string) { told++ }); err != nil {
			t.Error(err)
		}
	}
	if info, _ := os.Stat(folder); told != 1 || info.Mode().Perm() != 0o700 {
		t.Errorf("repaired %d times, now %v", told, info.Mode())
	}
	if err := PrivateFolder(in("nowhere"), nil); err != nil {
		t.Error(err)
	}
}

// TestRepairedOnce: if several goroutines find the same file open to others, one of them reports it.
func TestRepairedOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // on purpose
			t.Fatal(err)
		}
		var told atomic.Int32
		var readers sync.WaitGroup
		begin := make(chan struct{})
		for range 8 {
			readers.Go(func() {
				<-begin
				if _, err := ReadPrivate(file, 10, func(string) { told.Add(1) }); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		readers.Wait()
		if told.Load() != 1 {
			t.Fatalf("reported %d times", told.Load())
		}
	}
}

// TestOwner: a file of another user is not the user's own, except for root.
func TestOwner(t *testing.T) {
	info, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !isOwn(info) {
		t.Error("a folder of the user is not its own")
	}
	info.Sys().(*syscall.Stat_t).Uid++
	if isOwn(info) != (os.Geteuid() == 0) {
		t.Errorf("a folder of another user: %v", isOwn(info))
	}
}
