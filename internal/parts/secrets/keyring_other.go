//go:build !linux

package secrets

func hasKeyring() bool { return true }

func isUnreachable(error) bool { return false }
