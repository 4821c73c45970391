package child

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
