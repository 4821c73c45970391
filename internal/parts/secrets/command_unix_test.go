//go:build unix

package secrets

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A command that hangs is killed with everything that it started.
func TestRunIsKilled(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "alive")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := make(chan error)
	go func() {
		f, err := os.Open(fifo) // waits until the grandchild has opened it
		cancel(errors.New("enough"))
		if err == nil {
			_, err = io.ReadAll(f) // waits until the grandchild has ended
		}
		gone <- err
	}()
	_, err := Run(ctx, []string{"sh", "-c", `(exec sleep 100 3>"$0") & wait`, fifo}, "")
	if err == nil || err.Error() != "sh: enough" {
		t.Errorf("error %v", err)
	}
	if err := <-gone; err != nil {
		t.Error(err)
	}
}
