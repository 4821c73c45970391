//go:build !race

package e2e

// race reports whether the tests and mcpx are built with -race.
const race = false

// largeText is the size of a large content in bytes.
const largeText = 10 << 20

// manyCalls is the number of calls in flight of each of many clients.
const manyCalls = 100

// atOnce is the number of parallel tests; most of them only wait.
const atOnce = "16"
