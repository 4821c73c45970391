//go:build unix

package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestReadLink: a link to a file that does not exist is a lock that cannot be read.
func TestReadLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), Name)
	if err := os.Symlink("nowhere", path); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || errors.Is(err, fs.ErrNotExist) || err.Error() != path+" is a link to nowhere, which does not exist" {
		t.Errorf("a link to nothing: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
