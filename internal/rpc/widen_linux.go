package rpc

import (
	"os"

	"golang.org/x/sys/unix"
)

// Widen sets the capacity of a pipe, usually 64 KiB, so that reader and writer of a
// large message do not have to take turns. It ignores failures.
func Widen(pipe *os.File, size int) {
	if c, err := pipe.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) })
	}
}
