//go:build !linux

package jsonrpc

import "os"

// Widen leaves a pipe as the system made it.
func Widen(*os.File, int) {}
