//go:build unix && !race

package main

// race reports whether the tests and mcpx are built with -race.
const race = false
