package auth

import (
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"mcpx/internal/editfile"
	"mcpx/internal/secret"
)

// Store keeps credentials by key. Several processes may share a store. Its methods may be
// called concurrently.
type Store interface {
	// Check returns why nothing can be saved, so that nobody signs in for nothing.
	Check(ctx context.Context) error
	// Load returns the value of a key and its version, nil if there is none.
	Load(ctx context.Context, key string) (value []byte, version string, err error)
	// Lock waits until nobody else holds the key's lock.
	Lock(ctx context.Context, key string) (Lock, error)
	// Version changes with every Save. It is cheap, and may be some seconds old.
	Version(ctx context.Context, key string) (string, error)
	// Place describes where the value of a key is, for a person.
	Place(key string) string
}

// Lock is the lock of a key.
type Lock interface {
	// Save replaces the value of the key; nil removes it. If it fails, the old value stays.
	Save(ctx context.Context, value []byte) error
	// Unlock ends the lock.
	Unlock()
}

// Kind is a kind of store.
type Kind string

// The kinds. Auto encrypts if the system has a keyring.
const (
	KindAuto    Kind = "auto"
	KindKeyring Kind = "keyring"
	KindFile    Kind = "file"
)

// maxValue bounds the size of a stored value.
const maxValue = 4 << 20

// lockRetry is how often a held lock is tried again.
const lockRetry = 10 * time.Millisecond

// Files is the Store in a folder: a file for each key, which only the user can read. With
// a keyring, the files are encrypted, and the keyring has their key. The tokens are not in
// the keyring itself, because Windows and macOS allow only two to three kilobytes there.
type Files struct {
	folder string
	kind   Kind

	mu     sync.Mutex
	cipher cipher.AEAD // with the keyring's key, once that was read
}

// NewFiles returns the Store of a kind in a folder. It reads nothing yet.
func NewFiles(folder string, kind Kind) *Files { return &Files{folder: folder, kind: kind} }

// Folder returns where the tokens of the user are.
func Folder() string { return filepath.Join(secret.StateFolder(), "tokens") }

// Check implements Store. It creates the key in the keyring if there is none.
func (f *Files) Check(ctx context.Context) error {
	_, err := f.saveKey(ctx)
	return err
}

// Place implements Store.
func (f *Files) Place(key string) string {
	if data, err := editfile.ReadAtMost(f.path(key), maxValue); err == nil && isSealed(data) {
		return f.folder + " (encrypted)"
	}
	return f.folder
}

// Load implements Store. The version is read first, so that it is never newer than the value.
func (f *Files) Load(ctx context.Context, key string) (value []byte, version string, err error) {
	if version, err = f.Version(ctx, key); err == nil {
		value, err = f.load(ctx, key)
	}
	return value, version, err
}

func (f *Files) load(ctx context.Context, key string) ([]byte, error) {
	data, err := editfile.ReadAtMost(f.path(key), maxValue)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case isSealed(data):
		return f.unsealed(ctx, key, data)
	}
	return data, nil
}

// save replaces the value of a key; nil removes it.
func (f *Files) save(ctx context.Context, key string, value []byte) error {
	if value == nil {
		err := os.Remove(f.path(key))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	c, err := f.saveKey(ctx)
	if err != nil {
		return err
	}
	if c != nil {
		value = c.Seal([]byte(sealMark), nil, value, []byte(key))
	}
	return f.write(key, value)
}

// write replaces the file of a key. The old one stays if it fails.
func (f *Files) write(key string, value []byte) error {
	if err := f.create(); err != nil {
		return err
	}
	temporary := filepath.Join(f.folder, key+".tmp") // one that was left behind is replaced
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(value)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		now := time.Now() // the file system's own times are too coarse for Version
		err = os.Chtimes(temporary, now, now)
	}
	if err == nil {
		err = os.Rename(temporary, f.path(key))
	}
	if err != nil {
		_ = os.Remove(temporary)
	}
	return err
}

// Lock implements Store. The operating system releases the lock of a process that dies.
func (f *Files) Lock(ctx context.Context, key string) (Lock, error) {
	unlock, err := f.lock(ctx, key+".lock")
	if err != nil {
		return nil, err
	}
	return &fileLock{f, key, unlock}, nil
}

// fileLock is the lock of a key.
type fileLock struct {
	files  *Files
	key    string
	unlock func()
}

// Save implements Lock.
func (l *fileLock) Save(ctx context.Context, value []byte) error {
	return l.files.save(ctx, l.key, value)
}

// Unlock implements Lock.
func (l *fileLock) Unlock() { l.unlock() }

func (f *Files) lock(ctx context.Context, name string) (func(), error) {
	if err := f.create(); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(f.folder, name), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, err
	}
	return func() { _ = lock.Unlock() }, nil
}

// Version implements Store.
func (f *Files) Version(_ context.Context, key string) (string, error) {
	info, err := os.Stat(f.path(key))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	return strconv.FormatInt(info.ModTime().UnixNano(), 36), nil
}

func (f *Files) path(key string) string { return filepath.Join(f.folder, key+".json") }

// create creates the folder. A folder that others can read is not used.
func (f *Files) create() error {
	if err := os.MkdirAll(f.folder, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(f.folder)
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("other users can read %s; run chmod 700 on it", f.folder)
	}
	return nil
}
