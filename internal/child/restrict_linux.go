package child

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
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

// architectures are the system's names for the processors that denySockets knows.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in the seccomp_data that a filter reads, and the bit of the x32 system calls.
const (
	offsetNumber       = 0
	offsetArchitecture = 4
	x32Bit             = 0x40000000
)

// denySockets makes the thread, and what it executes, unable to create sockets. Landlock
// alone would leave UDP, Multipath TCP and the sockets of other programs open. Pairs of
// connected sockets are allowed: they lead nowhere else.
func denySockets() error {
	architecture, ok := architectures[runtime.GOARCH]
	if !ok {
		return fmt.Errorf(`"network": false is not possible on %s`, runtime.GOARCH)
	}
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		result = unix.BPF_RET | unix.BPF_K

		deny = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
	)
	filter := []unix.SockFilter{
		{Code: load, K: offsetArchitecture},
		{Code: equal, Jt: 0, Jf: 5, K: architecture}, // system calls of another architecture have other numbers
		{Code: load, K: offsetNumber},
		{Code: least, Jt: 3, K: x32Bit},
		{Code: equal, Jt: 2, K: unix.SYS_SOCKET},
		{Code: equal, Jt: 1, K: unix.SYS_IO_URING_SETUP}, // which can create sockets, too
		{Code: result, K: unix.SECCOMP_RET_ALLOW},
		{Code: result, K: deny},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	}
	runtime.KeepAlive(filter)
	if errors.Is(err, unix.EINVAL) {
		return errors.New(`the kernel has no seccomp filters, which "network": false needs`)
	}
	return err
}
