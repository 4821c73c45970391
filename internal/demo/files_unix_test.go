//go:build unix

package demo

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestFilesPipe: a pipe that nobody writes to is refused, and does not block.
func TestFilesPipe(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := connect(t, "files", Options{Folder: folder})
	if got, isError := callTool(t, c, "read_file", `{"path":"pipe"}`); got != "pipe is neither a file nor a folder" || !isError {
		t.Errorf("%q, error %v", got, isError)
	}
	if got, _ := callTool(t, c, "list_directory", `{}`); got != "pipe" {
		t.Errorf("%q", got)
	}
}
