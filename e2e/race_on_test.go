//go:build race

package e2e

// race reports whether the tests, and so the binary, are built with -race.
const race = true
