//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A read-only folder is an error, and no file is left. Root may write everywhere, so root
// uses /proc.
func TestEditReadOnlyFolder(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "c.json")
	write(t, path, "one", 0o600)
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(dir, 0o700) }()
	_, err := Edit(path, Options{Limit: limit, Backup: true}, to("two"))
	if os.Getuid() == 0 {
		_, err = Edit("/proc/mcpx.json", Options{Limit: limit, Create: 0o600}, to("two"))
		if err == nil {
			t.Error("written below /proc")
		}
		return
	}
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
	expect(t, dir, map[string]string{"c.json": "one"})
}
