//go:build unix

package jsonrpc

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// withoutWaiting returns a write that takes what the pipe has room for and never
// waits; nil for a file that would.
func withoutWaiting(w io.Writer) func(b []byte) (int, error) {
	f, ok := w.(*os.File)
	if !ok || f.SetWriteDeadline(time.Time{}) != nil { // only what can be polled has deadlines
		return nil
	}
	pipe, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	return func(b []byte) (n int, err error) {
		failed := pipe.Write(func(fd uintptr) bool {
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
