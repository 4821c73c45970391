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
)

// quietTime is how long the folder of the config file must be quiet before a reload: an
// editor may write a file in several steps.
const quietTime = 300 * time.Millisecond

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
	quiet := time.NewTimer(quietTime)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-w.Events:
			if !ok {
				return errors.New("the watch has ended")
			}
			quiet.Reset(quietTime)
		case <-w.Errors: // events may be lost
			quiet.Reset(quietTime)
		case <-quiet.C:
			_ = watchFolders(w, file) // the file may be a link to another folder now
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

// contentHash returns a hash of the file, or of the error that keeps it from being read.
func contentHash(file string) [sha256.Size]byte {
	data, err := config.ReadFile(file, config.MaxBytes)
	if err != nil {
		data = []byte(err.Error())
	}
	return sha256.Sum256(data)
}
