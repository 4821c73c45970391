package app

import (
	"context"
	"crypto/sha256"
	"os"
	"time"

	"mcpx/config"
	"mcpx/internal/lockfile"
)

// lookEvery is how often a watched config file is read.
const lookEvery = time.Second

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
	w := newWatch(a.config.File)
	a.tasks.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if w.look() {
					_ = a.Reload() // it reports its own error
				}
			}
		}
	})
}

// watch notices changes of a config file and of the lock file beside it, by their content:
// editors replace a file, Kubernetes replaces a link, and folders on a network send no
// events. See ADR 10.
type watch struct {
	file          string
	applied, seen hash // the content reported last, and that of the last look
}

type hash = [sha256.Size]byte

func newWatch(file string) *watch {
	now := contentHash(file)
	return &watch{file: file, applied: now, seen: now}
}

// look reports whether the content is new. Two looks in a row must find it, because a
// file may be written in several steps.
func (w *watch) look() bool {
	last := w.seen
	w.seen = contentHash(w.file)
	if w.seen != last || w.seen == w.applied {
		return false
	}
	w.applied = w.seen
	return true
}

// contentHash returns a hash of the config file and of the lock file beside it.
func contentHash(file string) hash {
	config, lock := fileHash(file, config.MaxBytes), fileHash(lockfile.Path(file), lockfile.MaxBytes)
	return sha256.Sum256(append(config[:], lock[:]...))
}

// fileHash returns a hash of a file, or of the error that keeps it from being read. A pipe
// can be read only once, so it never changes.
func fileHash(file string, limit int) hash {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return hash{}
	}
	data, err := config.ReadFile(file, limit)
	if err != nil {
		data = []byte(err.Error())
	}
	return sha256.Sum256(data)
}
