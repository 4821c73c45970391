// Package footprint is only here for the watcher in registry, which should call
// debug.FreeOSMemory itself.
package footprint

import "runtime/debug"

// Trim returns free memory to the system.
func Trim() { debug.FreeOSMemory() }
