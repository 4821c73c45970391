package jsonrpc

import (
	"os"

	"golang.org/x/sys/unix"
)

// Widen makes a pipe hold that many bytes unread: with the usual 64 KiB its ends
// take turns sixteen times for a message of a megabyte. Where it is not allowed,
// or no pipe, it stays as it is.
func Widen(pipe *os.File, size int) {
	if c, err := pipe.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) })
	}
}
