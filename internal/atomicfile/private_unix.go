//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

// openHere opens a file without following a symbolic link, and without waiting for a pipe.
func openHere(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// isOwn reports whether a file belongs to the user. To root every file does: a
// volume in a container often belongs to another user.
func isOwn(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (int64(stat.Uid) == int64(os.Geteuid()) || os.Geteuid() == 0)
}

// isOpenToOthers reports whether other users can read or write a file.
func isOpenToOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
