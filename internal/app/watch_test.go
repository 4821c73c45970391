package app

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// patience is the time limit for a notice.
const patience = 30 * time.Second

// watched is a config file that is watched.
type watched struct {
	file    string
	changes chan struct{}
}

// watch starts to watch a new file, until the test ends.
func watch(t *testing.T) *watched {
	t.Helper()
	mcptest.NothingLeft(t)
	w := &watched{filepath.Join(t.TempDir(), "folder", "mcpx.json"), make(chan struct{}, 100)}
	w.save(t, "first")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := watchFile(ctx, w.file, func() { w.changes <- struct{}{} }); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for i := range patience / (2 * quietTime) { // the watch may begin after the first changes
		w.save(t, i.String())
		select {
		case <-w.changes:
			return w
		case <-time.After(2 * quietTime):
		}
	}
	t.Fatal("no notice of a change")
	return nil
}

// save writes the file, in a folder that may be new.
func (w *watched) save(t *testing.T, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wait waits for a notice that the file has changed.
func (w *watched) wait(t *testing.T, what string) {
	t.Helper()
	select {
	case <-w.changes:
	case <-time.After(patience):
		t.Fatalf("no notice: %s", what)
	}
}

// TestWatchFindsFolderAgain: a folder that is removed and made again is watched again.
func TestWatchFindsFolderAgain(t *testing.T) {
	w := watch(t)
	if err := os.RemoveAll(filepath.Dir(w.file)); err != nil {
		t.Fatal(err)
	}
	w.wait(t, "the folder is gone")
	w.save(t, "back")
	w.wait(t, "the folder is back")
	w.save(t, "changed")
	w.wait(t, "a change in the new folder")
}

// TestWatchInBusyFolder: another file that is written all the time does not delay the notice
// forever.
func TestWatchInBusyFolder(t *testing.T) {
	w := watch(t)
	done := make(chan struct{})
	var writing sync.WaitGroup
	t.Cleanup(func() {
		close(done)
		writing.Wait()
	})
	writing.Go(func() {
		tick := time.NewTicker(quietTime / 10)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := os.WriteFile(filepath.Join(filepath.Dir(w.file), "log"), nil, 0o600); err != nil {
					t.Error(err)
				}
			case <-done:
				return
			}
		}
	})
	w.save(t, "changed")
	w.wait(t, "a change in a busy folder")
}
