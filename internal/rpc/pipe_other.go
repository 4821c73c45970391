//go:build !unix

package rpc

import (
	"io"
	"os"
)

// nonblockingWrite returns nil: there is no such write on this system.
func nonblockingWrite(io.Writer) func(b []byte) (int, error) { return nil }

// Widen does nothing on this system.
func Widen(*os.File, int) {}
