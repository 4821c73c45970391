package atomicfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const limit = 1 << 20

// folder returns an empty folder that also has the lock.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("HOME", dir)
	t.Setenv("LocalAppData", dir)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	return work
}

func write(t *testing.T, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func to(text string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return []byte(text), nil }
}

// expect compares the files of a folder with the expected ones.
func expect(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if expected, ok := want[e.Name()]; err != nil || !ok || string(text) != expected {
			t.Errorf("%s: %q, %v; want %q", e.Name(), text, err, expected)
		}
	}
	if len(entries) != len(want) {
		t.Errorf("%d files, want %d", len(entries), len(want))
	}
}

func TestEditKeepsModeAndBackups(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "c.json")
	write(t, path, "one", 0o640)
	for _, text := range []string{"two", "three", "three"} {
		if _, err := Edit(path, Options{Limit: limit, Backup: true}, to(text)); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, dir, map[string]string{"c.json": "three", "c.json.bak": "one", "c.json.bak-2": "two"})
	if runtime.GOOS == "windows" {
		return
	}
	for _, name := range []string{"c.json", "c.json.bak"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestEditCreates(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "c.json")
	if _, err := Edit(path, Options{Limit: limit}, to("x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	r, err := Edit(path, Options{Limit: limit, Create: 0o600, Backup: true}, func(old []byte) ([]byte, error) {
		if old != nil {
			t.Errorf("old %q", old)
		}
		return []byte("x"), nil
	})
	if err != nil || !r.Created || !r.Changed || r.Backup != "" {
		t.Errorf("%+v, %v", r, err)
	}
	expect(t, dir, map[string]string{"c.json": "x"})
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestReplaceRemovesLeftovers: a process that was killed leaves a temporary file. The next
// one removes it, unless it may still be in use, or is not a temporary file of that target.
func TestReplaceRemovesLeftovers(t *testing.T) {
	dir := folder(t)
	old := time.Now().Add(-2 * leftoverAge)
	for _, name := range []string{".a.json.mcpx-123", ".a.json.mcpx-notes", ".a.json.mcpx-", ".b.json.mcpx-123"} {
		write(t, filepath.Join(dir, name), "old", 0o600)
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, ".a.json.mcpx-456"), "in use", 0o600)
	if err := Replace(filepath.Join(dir, "a.json"), []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, dir, map[string]string{
		"a.json": "new", ".a.json.mcpx-456": "in use",
		".a.json.mcpx-notes": "old", ".a.json.mcpx-": "old", ".b.json.mcpx-123": "old",
	})
}

func TestEditFollowsLinks(t *testing.T) {
	dir := folder(t)
	target := filepath.Join(dir, "real.json")
	write(t, target, "one", 0o600)
	links := t.TempDir()
	link, dangling := filepath.Join(links, "link.json"), filepath.Join(links, "dangling.json")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "none.json"), dangling); err != nil {
		t.Fatal(err)
	}
	if _, err := Edit(link, Options{Limit: limit, Backup: true}, to("two")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.Readlink(link); err != nil || got != target {
		t.Errorf("link to %q, %v", got, err)
	}
	if _, err := Edit(dangling, Options{Limit: limit, Create: 0o600}, to("x")); err == nil || !strings.Contains(err.Error(), "link to a file that does not exist") {
		t.Errorf("got %v", err)
	}
	expect(t, dir, map[string]string{"real.json": "two", "real.json.bak": "one"})
}

func TestEditFails(t *testing.T) {
	broken := errors.New("broken")
	for _, row := range []struct {
		name   string
		change func(path string) func([]byte) ([]byte, error)
		want   error
		text   string
	}{
		{"change fails", func(string) func([]byte) ([]byte, error) {
			return func([]byte) ([]byte, error) { return nil, broken }
		}, broken, "one"},
		{"written meanwhile", func(path string) func([]byte) ([]byte, error) {
			return func([]byte) ([]byte, error) { return []byte("two"), os.WriteFile(path, []byte("other"), 0o600) }
		}, ErrChanged, "other"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := folder(t)
			path := filepath.Join(dir, "c.json")
			write(t, path, "one", 0o600)
			r, err := Edit(path, Options{Limit: limit, Backup: true}, row.change(path))
			if !errors.Is(err, row.want) || r != (Result{}) {
				t.Errorf("%+v, %v", r, err)
			}
			expect(t, dir, map[string]string{"c.json": row.text})
		})
	}
}

func TestEditRefuses(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "c.json")
	write(t, path, strings.Repeat("x", 20), 0o600)
	if _, err := Edit(path, Options{Limit: 10}, to("y")); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
	if _, err := Edit(dir, Options{Limit: limit}, to("y")); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
	write(t, path, "x", 0o400)
	if _, err := Edit(path, Options{Limit: limit}, to("y")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
	write(t, path+"2", "x", 0o600)
	expect(t, dir, map[string]string{"c.json": "x", "c.json2": "x"})
}

// TestEditConcurrently: concurrent edits lose nothing.
func TestEditConcurrently(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "c.txt")
	const edits = 20
	var all sync.WaitGroup
	for n := range edits {
		all.Go(func() {
			_, err := Edit(path, Options{Limit: limit, Create: 0o600}, func(old []byte) ([]byte, error) {
				return append(bytes.Clone(old), strconv.Itoa(n)+"\n"...), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(path)
	if got := bytes.Count(text, []byte("\n")); err != nil || got != edits {
		t.Errorf("%d lines, %v", got, err)
	}
}
