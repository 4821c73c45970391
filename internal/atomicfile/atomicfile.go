// Package atomicfile replaces the contents of files that people and other programs use
// too: whole or not at all, with the same permissions, through symbolic links, and one
// mcpx at a time.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"
	"github.com/rogpeppe/go-internal/robustio"
)

// Options says how a file may be edited.
type Options struct {
	Limit  int64       // size of the largest file, in bytes
	Create fs.FileMode // permissions of a file that does not exist yet; 0: it must exist
	Backup bool        // keep the old contents beside the file
}

// Result says what an edit did.
type Result struct {
	Changed bool   // the file was written
	Created bool   // and did not exist before
	Backup  string // where the old contents are; empty without a backup
}

// ErrChanged reports that another program wrote the file during the edit. Nothing was
// written.
var ErrChanged = errors.New("another program changed the file at the same time")

// Edit replaces the contents of a file by what change returns for them; nil stands for
// a file that does not exist. If change fails or returns the same bytes, nothing is
// written. Edits by several processes of one user happen one after the other; change
// must not wait for anything.
func Edit(path string, o Options, change func(old []byte) ([]byte, error)) (Result, error) {
	unlock, err := lock()
	if err != nil {
		return Result{}, fmt.Errorf("locking: %w", err)
	}
	defer unlock()
	f, err := open(path, o)
	if err != nil {
		return Result{}, err
	}
	text, err := change(f.old)
	if err != nil {
		return Result{}, err
	}
	if f.exists && bytes.Equal(text, f.old) {
		return Result{}, nil
	}
	r := Result{Changed: true, Created: !f.exists}
	if o.Backup && f.exists {
		if r.Backup, err = f.backup(); err != nil {
			return Result{}, err
		}
	}
	if err := replace(f.path, text, f.mode, func() error { return f.unchanged(o.Limit) }); err != nil {
		if r.Backup != "" {
			_ = os.Remove(r.Backup)
		}
		return Result{}, err
	}
	return r, nil
}

// Read returns the contents of a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return ReadAtMost(path, limit)
}

// ReadAtMost returns the contents of any file of at most limit bytes.
func ReadAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s: larger than %d MiB; check that this is the right file", path, limit>>20)
	}
	return data, err
}

// lock waits until no other process edits a file. One lock for all files is enough,
// since an edit takes milliseconds. The lock is not beside the file: a client may have
// a lock file of its own there.
func lock() (unlock func(), err error) {
	folder, err := os.UserCacheDir()
	if err == nil {
		folder = filepath.Join(folder, "mcpx")
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil { // no home, or one that cannot be written
		folder = os.TempDir()
	}
	return lockedfile.MutexAt(filepath.Join(folder, fmt.Sprintf("mcpx-edit-%d.lock", os.Getuid()))).Lock()
}

// file is a file that is being edited.
type file struct {
	path   string // without symbolic links
	exists bool
	old    []byte
	mode   fs.FileMode
}

func open(path string, o Options) (*file, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && o.Create != 0 {
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, fmt.Errorf("%s is a link to a file that does not exist", path)
		}
		return &file{path: path, mode: o.Create}, nil
	}
	if err != nil {
		return nil, err
	}
	f := &file{path: real, exists: true}
	if f.old, err = Read(real, o.Limit); err != nil {
		return nil, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, err
	}
	if f.mode = info.Mode().Perm(); f.mode&0o200 == 0 {
		return nil, fmt.Errorf("%s is read-only: %w", real, fs.ErrPermission)
	}
	return f, nil
}

// backup writes the old contents beside the file, under the first free name: FILE.bak,
// FILE.bak-2 and so on.
func (f *file) backup() (string, error) {
	for n := 1; ; n++ {
		name := f.path + ".bak"
		if n > 1 {
			name = fmt.Sprintf("%s-%d", name, n)
		}
		b, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		return name, finish(b, f.old, f.mode)
	}
}

// Replace writes a file with these permissions. A file that was there is replaced whole, or
// not at all. Unlike Edit, Replace replaces a symbolic link itself and takes no lock.
func Replace(path string, text []byte, mode fs.FileMode) error {
	return replace(path, text, mode, func() error { return nil })
}

// replace writes a new file, and gives it the path if check returns nil.
func replace(path string, text []byte, mode fs.FileMode, check func() error) error {
	folder, prefix := filepath.Dir(path), "."+filepath.Base(path)+".mcpx-"
	removeLeftovers(folder, prefix)
	temporary, err := os.CreateTemp(folder, prefix+"*")
	if err != nil {
		return err
	}
	err = finish(temporary, text, mode)
	if err == nil {
		err = check()
	}
	if err == nil {
		err = robustio.Rename(temporary.Name(), path) // on Windows, it waits for readers
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
		return err
	}
	if f, err := os.Open(folder); err == nil { // so that the new name survives a crash
		_ = f.Sync()
		_ = f.Close()
	}
	return nil
}

// leftoverAge is the age of a temporary file that no process writes any more.
const leftoverAge = time.Hour

// removeLeftovers removes the temporary files of processes that were killed while they
// replaced the same file.
func removeLeftovers(folder, prefix string) {
	entries, _ := os.ReadDir(folder) // if it cannot be read, they stay
	for _, e := range entries {
		number, isOurs := strings.CutPrefix(e.Name(), prefix)
		if !isOurs || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > leftoverAge {
			_ = os.Remove(filepath.Join(folder, e.Name()))
		}
	}
}

// unchanged returns ErrChanged if the file is not what it was when the edit began.
func (f *file) unchanged(limit int64) error {
	now, err := Read(f.path, limit)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !f.exists:
		return nil
	case err != nil || !f.exists || !bytes.Equal(now, f.old):
		return fmt.Errorf("%s: %w", f.path, ErrChanged)
	}
	return nil
}

// finish writes a new file to the disk and closes it.
func finish(f *os.File, text []byte, mode fs.FileMode) error {
	_, err := f.Write(text)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
