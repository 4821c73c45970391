//go:build !linux

package app

// dropPages does nothing: only Linux has a way.
func dropPages() {}
