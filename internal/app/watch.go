package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"mcpx/config"
	"mcpx/internal/lockfile"
)

// Times of a watch.
const (
	quietTime   = 300 * time.Millisecond // without events before a check: an editor may write a file in several steps
	maxDelay    = 3 * time.Second        // from an event to its check, if other files in the folder are written all the time
	rewatchTime = time.Second            // between attempts to watch a folder that was removed
)

// setWatch starts or stops the watch of the config file. The caller holds a.reload.mu.
func (a *App) setWatch(on bool) {
	if a.reload.stopWatch != nil {
		a.reload.stopWatch()
		a.reload.stopWatch = nil
	}
	if !on {
		return
	}
	ctx, cancel := context.WithCancel(a.reload.ctx)
	a.reload.stopWatch = cancel
	file := a.config.File
	a.tasks.Go(func() {
		if err := watchFile(ctx, file, func() { _ = a.Reload() }); err != nil { // Reload reports its own error
			a.log.Error().Err(err).Msg("the config file is not watched; send SIGHUP to apply changes")
		}
	})
}

// watchFile calls changed whenever the content of a file has changed, until ctx ends. It
// watches folders, since editors replace the file, and Kubernetes replaces a link.
func watchFile(ctx context.Context, file string, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	if err := watchFolders(w, file); err != nil {
		return err
	}
	last := contentHash(file)
	check := time.NewTimer(quietTime)
	defer check.Stop()
	var due time.Time // the latest time of the next check; zero if there was no event
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-w.Events:
			if !ok {
				return errors.New("the watch has ended")
			}
			if due.IsZero() {
				due = time.Now().Add(maxDelay)
			}
			check.Reset(min(quietTime, time.Until(due)))
		case <-w.Errors: // events may be lost
			check.Reset(quietTime)
		case <-check.C:
			due = time.Time{}
			if watchFolders(w, file) != nil { // also if the file is a link to another folder now
				check.Reset(rewatchTime)
			}
			if now := contentHash(file); now != last {
				last = now
				changed()
			}
		}
	}
}

// watchFolders watches the folder of the file, and that of the file it is a link to.
func watchFolders(w *fsnotify.Watcher, file string) error {
	if err := w.Add(filepath.Dir(file)); err != nil {
		return fmt.Errorf("watching %s: %w", filepath.Dir(file), err)
	}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		return w.Add(filepath.Dir(target))
	}
	return nil
}

// contentHash returns a hash of the config file and of the lock file beside it.
func contentHash(file string) [sha256.Size]byte {
	config, lock := fileHash(file, config.MaxBytes), fileHash(lockfile.Path(file), lockfile.MaxBytes)
	return sha256.Sum256(append(config[:], lock[:]...))
}

// fileHash returns a hash of a file, or of the error that keeps it from being read.
func fileHash(file string, limit int) [sha256.Size]byte {
	data, err := config.ReadFile(file, limit)
	if err != nil {
		data = []byte(err.Error())
	}
	return sha256.Sum256(data)
}
