//go:build !windows

package ansi

// understandsEscapes returns true: every terminal does.
func understandsEscapes(uintptr) bool { return true }
