package signin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"mcpx/internal/atomicfile"
	"mcpx/internal/store"
)

// files is the Keeper in a folder: a file for each key, which only the user can read.
// It repairs permissions that are too wide. It does not use files of other users.
type files struct {
	folder   string
	repaired atomicfile.Repaired
}

// maxValue bounds the size of a file.
const maxValue = 4 << 20

// lockRetry is how often a held lock is tried again.
const lockRetry = 10 * time.Millisecond

// Folder returns where the tokens of the user are.
func Folder() string { return filepath.Join(atomicfile.StateFolder(), "tokens") }

// Get implements Keeper.
func (f files) Get(_ context.Context, key string) ([]byte, error) {
	if err := atomicfile.PrivateFolder(f.folder, f.repaired); err != nil {
		return nil, err
	}
	data, err := atomicfile.ReadPrivate(f.path(key), maxValue, f.repaired)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Lock implements Keeper. The operating system releases the lock of a process that dies.
func (f files) Lock(ctx context.Context, key string) (store.Lock, error) {
	unlock, err := f.lock(ctx, key+".lock")
	set := func(_ context.Context, value []byte, _ time.Duration) error { // a file does not expire
		if len(value) > 0 {
			return atomicfile.Replace(f.path(key), value, 0o600)
		}
		if err := os.Remove(f.path(key)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return store.Lock{Set: set, Unlock: unlock}, err
}

// lock waits for a lock file and returns what ends the lock.
func (f files) lock(ctx context.Context, name string) (func(), error) {
	if err := f.create(); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(f.folder, name), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return nil, err
	}
	return func() { _ = lock.Unlock() }, nil
}

func (f files) path(key string) string { return filepath.Join(f.folder, key+".json") }

// create creates the folder.
func (f files) create() error {
	if err := os.MkdirAll(f.folder, 0o700); err != nil {
		return err
	}
	return atomicfile.PrivateFolder(f.folder, f.repaired)
}
