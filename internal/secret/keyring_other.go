//go:build !linux

package secret

func hasKeyring() bool { return true }

func isUnreachable(error) bool { return false }
