//go:build !linux

package footprint

// dropPages knows no way.
func dropPages() {}

func lookForPages() {}
