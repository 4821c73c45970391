package child

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock.
const (
	rightsToRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsToFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsToAll  = 1<<15 - 1 // those of version 3: everything about files and folders
)

// landlockRights returns the rights that a version of Landlock can restrict.
func landlockRights(version int) unix.LandlockRulesetAttr {
	a := unix.LandlockRulesetAttr{Handled_access_fs: rightsToAll}
	if version >= 5 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	if version >= 9 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	}
	return a
}

// kernelLandlock returns the kernel's version of Landlock, 0 if it has none.
func kernelLandlock() int {
	version, _, err := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if err != 0 {
		return 0
	}
	return int(version)
}

// restrictFiles lets this thread, and the program that it executes, change only what is in
// the folders, and the files. Everything may be read.
func restrictFiles(folders, files []string) error {
	rights := landlockRights(kernelLandlock())
	set, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rights)), unsafe.Sizeof(rights), 0)
	if failed != 0 {
		return fmt.Errorf("landlock: %w", failed)
	}
	defer func() { _ = unix.Close(int(set)) }()
	err := allow(set, "/", rightsToRead)
	for _, folder := range folders {
		err = errors.Join(err, allow(set, folder, rightsToAll))
	}
	for _, file := range files {
		if one := allow(set, file, rightsToFile); !errors.Is(one, fs.ErrNotExist) {
			err = errors.Join(err, one)
		}
	}
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if _, _, failed := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); failed != 0 {
		return fmt.Errorf("landlock: %w", failed)
	}
	return nil
}

// allow adds a rule: rights to everything below a path.
func allow(set uintptr, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, failed := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, set, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); failed != 0 {
		return fmt.Errorf("landlock: %s: %w", path, failed)
	}
	return nil
}
