package app

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"mcpx/internal/parts/lock/lockfile"
)

// TestWatch: a change counts once, at the second look that finds it.
func TestWatch(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(t *testing.T, file string)
		want   bool
	}{
		{"nothing", func(*testing.T, string) {}, false},
		{"written", func(t *testing.T, file string) { save(t, file, "new") }, true},
		{"written with the same content", func(t *testing.T, file string) { save(t, file, "old") }, false},
		{"written again within the precision of the clock", func(t *testing.T, file string) {
			before := stat(t, file)
			save(t, file, "new")
			try(t, os.Chtimes(file, before.ModTime(), before.ModTime()))
		}, true},
		{"replaced", func(t *testing.T, file string) {
			save(t, file+".new", "new")
			try(t, os.Rename(file+".new", file))
		}, true},
		{"replaced by a link", func(t *testing.T, file string) {
			save(t, file+".new", "new")
			try(t, os.Remove(file))
			try(t, os.Symlink(file+".new", file))
		}, true},
		{"an old file in its place", func(t *testing.T, file string) {
			save(t, file+".new", "new")
			long := stat(t, file).ModTime().Add(-time.Hour)
			try(t, os.Chtimes(file+".new", long, long))
			try(t, os.Rename(file+".new", file))
		}, true},
		{"removed with its folder", func(t *testing.T, file string) { try(t, os.RemoveAll(filepath.Dir(file))) }, true},
		{"folder made again", func(t *testing.T, file string) {
			try(t, os.RemoveAll(filepath.Dir(file)))
			save(t, file, "new")
		}, true},
		{"new lock file", func(t *testing.T, file string) { save(t, lockfile.Path(file), "new") }, true},
		{"another file in the folder", func(t *testing.T, file string) { save(t, file+".log", "new") }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWatch(save(t, filepath.Join(t.TempDir(), "folder", "mcpx.json"), "old"))
			for range 3 { // one change after the other
				row.change(t, w.file)
				if w.look() {
					t.Fatal("a change counts at the first look")
				}
				if got := w.look(); got != row.want {
					t.Fatalf("got %t, want %t", got, row.want)
				}
				if w.look() {
					t.Fatal("a change counts twice")
				}
				save(t, w.file, "old")
				_ = os.Remove(lockfile.Path(w.file))
				w.look()
				w.look()
			}
		})
	}
}

// TestWatchWaitsForTheEnd: a file that is written in steps does not count before its end.
func TestWatchWaitsForTheEnd(t *testing.T) {
	w := newWatch(save(t, filepath.Join(t.TempDir(), "mcpx.json"), "{}"))
	for _, text := range []string{"", "{", `{"a":`, `{"a": 1}`} {
		save(t, w.file, text)
		if w.look() {
			t.Errorf("%q counts", text)
		}
	}
	if !w.look() {
		t.Error("the whole file does not count")
	}
}

// TestWatchReadsOnlyFiles: a config that comes from a pipe is never read again.
func TestWatchReadsOnlyFiles(t *testing.T) {
	w := newWatch(os.DevNull)
	for range 2 {
		if w.look() {
			t.Error("a device has changed")
		}
	}
}

// save writes a file, in a folder that may be new, and returns its name.
func save(t *testing.T, file, text string) string {
	t.Helper()
	try(t, os.MkdirAll(filepath.Dir(file), 0o700))
	try(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func stat(t *testing.T, file string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(file)
	try(t, err)
	return info
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
