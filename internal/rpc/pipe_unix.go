//go:build unix

package rpc

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pipeAtomic is how many bytes a writable pipe accepts at once (PIPE_BUF). It is 0
// except on Linux, since other systems do not promise that.
var pipeAtomic = map[string]int{"linux": 4096}[runtime.GOOS]

// nonblockingWrite returns a function that writes as much as the pipe has room for and
// never waits. It returns nil if w is not a pipe.
func nonblockingWrite(w io.Writer) func(b []byte) (int, error) {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	pipe, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	isBlocking := f.SetWriteDeadline(time.Time{}) != nil // only pollable files have deadlines
	if isBlocking && !isPipe(f) {
		return nil
	}
	return func(b []byte) (n int, err error) {
		failed := pipe.Write(func(fd uintptr) bool {
			if isBlocking && (len(b) > pipeAtomic || !hasRoom(int(fd))) {
				return true
			}
			n, err = syscall.Write(int(fd), b)
			return true
		})
		switch {
		case failed != nil:
			return 0, failed
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
			return 0, nil
		}
		return max(n, 0), err
	}
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// hasRoom reports whether a blocking pipe accepts pipeAtomic bytes now. mcpx's stdout
// may be such a pipe: the parent process decides that.
func hasRoom(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLOUT != 0
}

// Widen sets the capacity of a pipe, usually 64 KiB, so that reader and writer of a
// large message do not have to take turns. It ignores failures, and works only on Linux.
func Widen(pipe *os.File, size int) {
	const setPipeSize = 1031 // F_SETPIPE_SZ
	if c, err := pipe.SyscallConn(); err == nil && runtime.GOOS == "linux" {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, setPipeSize, size) })
	}
}
