//go:build unix

package jsonrpc

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pipeAtomic is what a pipe with room takes whole (PIPE_BUF) on Linux. What others
// promise is not known here, so there nothing is.
var pipeAtomic = map[string]int{"linux": 4096}[runtime.GOOS]

// withoutWaiting returns a write that takes what the pipe has room for and never
// waits; nil for what is no pipe.
func withoutWaiting(w io.Writer) func(b []byte) (int, error) {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	pipe, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	isBlocking := f.SetWriteDeadline(time.Time{}) != nil // only what can be polled has deadlines
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

// hasRoom reports whether a pipe takes a write of pipeAtomic bytes now. mcpx's
// own stdout is such a pipe: whoever made it decides whether it blocks.
func hasRoom(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1 && fds[0].Revents&unix.POLLOUT != 0
}
