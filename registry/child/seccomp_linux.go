package child

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// architectures has the kernel's numbers of the architectures whose system calls the filter knows.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in the seccomp_data that a filter reads. Both processors store the low half of an
// argument first, and the kernel reads only that half of a process ID.
const (
	offsetNumber       = 0
	offsetArchitecture = 4
	offsetArguments    = 16
	argumentSize       = 8
)

// x32Bit marks system calls of the x32 ABI, which have other numbers.
const x32Bit = 0x40000000

// Instructions of a filter.
const (
	bpfLoad   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	bpfEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	bpfLeast  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	bpfReturn = unix.BPF_RET | unix.BPF_K

	bpfAllow       = unix.SECCOMP_RET_ALLOW
	bpfDeny        = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	bpfDenyNetwork = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
)

// socketCalls create sockets. Landlock alone would leave UDP, Multipath TCP and the sockets of
// other programs open. Pairs of connected sockets are allowed: they lead nowhere else.
var socketCalls = []uint32{unix.SYS_SOCKET, unix.SYS_IO_URING_SETUP}

// ownProcessCalls change limits and priorities of a process, which Landlock does not restrict:
// a limit of 0 s of CPU time would end mcpx. They are allowed only if the argument with the
// process ID is 0, which means the calling process.
var ownProcessCalls = []struct {
	number   uint32
	argument uint32 // index of the process ID
	users    uint32 // value of the first argument that makes the call affect all processes of a user; 0 if there is none
}{
	{number: unix.SYS_PRLIMIT64},
	{number: unix.SYS_SCHED_SETAFFINITY},
	{number: unix.SYS_SCHED_SETATTR},
	{number: unix.SYS_SCHED_SETPARAM},
	{number: unix.SYS_SCHED_SETSCHEDULER},
	{number: unix.SYS_SETPRIORITY, argument: 1, users: unix.PRIO_USER},
	{number: unix.SYS_IOPRIO_SET, argument: 1, users: ioprioWhoUser},
}

// ioprioWhoUser is IOPRIO_WHO_USER of linux/ioprio.h.
const ioprioWhoUser = 3

// callFilter returns a filter for the system calls of a sandboxed process.
func callFilter(architecture uint32, network bool) []unix.SockFilter {
	filter := []unix.SockFilter{
		{Code: bpfLoad, K: offsetArchitecture},
		{Code: bpfEqual, Jt: 1, K: architecture},
		{Code: bpfReturn, K: bpfDeny},
		{Code: bpfLoad, K: offsetNumber},
		{Code: bpfLeast, Jf: 1, K: x32Bit},
		{Code: bpfReturn, K: bpfDeny},
	}
	if !network {
		for _, number := range socketCalls {
			filter = append(filter, unix.SockFilter{Code: bpfEqual, Jf: 1, K: number}, unix.SockFilter{Code: bpfReturn, K: bpfDenyNetwork})
		}
	}
	for _, call := range ownProcessCalls {
		rule := []unix.SockFilter{
			{Code: bpfLoad, K: offsetArguments + call.argument*argumentSize},
			{Code: bpfEqual, Jt: 1, K: 0},
			{Code: bpfReturn, K: bpfDeny},
		}
		if call.users != 0 {
			rule = append(rule,
				unix.SockFilter{Code: bpfLoad, K: offsetArguments},
				unix.SockFilter{Code: bpfEqual, Jf: 1, K: call.users},
				unix.SockFilter{Code: bpfReturn, K: bpfDeny})
		}
		rule = append(rule, unix.SockFilter{Code: bpfReturn, K: bpfAllow})
		filter = append(filter, unix.SockFilter{Code: bpfEqual, Jf: uint8(len(rule)), K: call.number})
		filter = append(filter, rule...)
	}
	return append(filter, unix.SockFilter{Code: bpfReturn, K: bpfAllow})
}

// restrictCalls restricts the thread and the program that it executes. They cannot change the
// limits and priorities of other processes. Without network, they cannot create sockets either.
func restrictCalls(network bool) error {
	architecture, ok := architectures[runtime.GOARCH]
	if !ok && network {
		return nil // documented: there is no filter on other processors
	}
	if !ok {
		return fmt.Errorf(`"network": false is not possible on %s`, runtime.GOARCH)
	}
	filter := callFilter(architecture, network)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	}
	runtime.KeepAlive(filter)
	if errors.Is(err, unix.EINVAL) {
		return errors.New("the kernel has no seccomp filters, which the sandbox needs")
	}
	return err
}
