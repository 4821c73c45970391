package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// Repaired is called with the path of a file or folder that other users could read or write,
// after its permissions were repaired. It may be nil.
type Repaired func(path string)

// StateFolder returns the folder for lasting data: mcpx in $XDG_STATE_HOME, on Windows in
// %LocalAppData%, and otherwise in ~/.local/state.
func StateFolder() string {
	if folder := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "mcpx")
	}
	if folder := os.Getenv("LocalAppData"); runtime.GOOS == "windows" && folder != "" {
		return filepath.Join(folder, "mcpx")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = os.TempDir()
	}
	return filepath.Join(home, ".local", "state", "mcpx")
}

// ReadPrivate returns the contents of a file of at most limit bytes that only the user may
// read. It repairs the permissions of a file that other users can open. It refuses a file of
// another user, and anything that is not a regular file, such as a symbolic link.
func ReadPrivate(path string, limit int64, repaired Repaired) ([]byte, error) {
	if info, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file, so mcpx does not use it; remove it", path)
	}
	f, err := openHere(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if err := makePrivate(f, repaired); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d MiB", path, limit>>20)
	}
	return data, err
}

// PrivateFolder repairs the permissions of a folder that other users can open. It refuses a folder
// of another user. A folder that does not exist is no error. A symbolic link counts as the
// folder that it names.
func PrivateFolder(path string, repaired Repaired) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return makePrivate(f, repaired)
}

// makePrivate checks an open file or folder, and repairs its permissions.
func makePrivate(f *os.File, repaired Repaired) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !isOwn(info) {
		return fmt.Errorf("%s belongs to another user, so mcpx does not use it; remove it, or make it yours with chown", f.Name())
	}
	if !isOpenToOthers(info) {
		return nil
	}
	isFirst, err := repair(f)
	if err != nil {
		return fmt.Errorf("other users can read %s, and mcpx cannot change its permissions: %w; change them, or move it to another file system", f.Name(), err)
	}
	if isFirst && repaired != nil {
		repaired(f.Name())
	}
	return nil
}

// repairing is held while permissions are repaired, so that one repair is reported once.
var repairing sync.Mutex

// repair takes the permissions of an open file or folder from other users. It reports false if
// another goroutine has just done so.
func repair(f *os.File) (bool, error) {
	repairing.Lock()
	defer repairing.Unlock()
	info, err := f.Stat()
	if err != nil || !isOpenToOthers(info) {
		return false, err
	}
	err = f.Chmod(info.Mode().Perm() &^ 0o077)
	if info, statErr := f.Stat(); err == nil && statErr == nil && isOpenToOthers(info) { // some file systems ignore Chmod
		err = errors.New("the file system does not change permissions")
	}
	return err == nil, err
}
