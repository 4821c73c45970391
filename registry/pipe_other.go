//go:build !linux

package registry

import "os"

// widen leaves a pipe as the system made it.
func widen(*os.File) {}
