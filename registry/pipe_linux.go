package registry

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeBytes is what a child's stdout holds unread: with the usual 64 KiB a child
// and mcpx would take turns sixteen times for a result of a megabyte. Users have
// 64 MiB for all their pipes.
const pipeBytes = 256 << 10

// widen makes a pipe hold more. Where that is not allowed it stays as it is.
func widen(pipe *os.File) {
	if c, err := pipe.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
	}
}
