package logging

import (
	"errors"
	"os"
	"sync"
)

// File is a file that lines are appended to. It can be opened again after another program
// has renamed it. Its methods may be called concurrently.
type File struct {
	path string

	mu   sync.Mutex
	file *os.File
}

// OpenFile opens a file, or creates it, readable by its owner alone.
func OpenFile(path string) (*File, error) {
	f := &File{path: path}
	return f, f.Reopen()
}

// Reopen opens the file at the same path again. If that fails, the old file stays open.
func (f *File) Reopen() error {
	next, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.file
	f.file = next
	if old != nil {
		_ = old.Close()
	}
	return nil
}

// Write implements io.Writer.
func (f *File) Write(lines []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Write(lines)
}

// Close closes the file. It is safe to call twice.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
