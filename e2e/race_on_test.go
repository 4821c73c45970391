//go:build race

package e2e

// race reports whether the tests and mcpx are built with -race.
const race = true

// largeText is the size of a large content in bytes. With the detector each costs a
// hundred times as much.
const largeText = 1 << 20

// manyCalls is the number of calls in flight of each of many clients. With the detector
// they take ten times as long.
const manyCalls = 20

// atOnce is the number of parallel tests; most of them only wait.
const atOnce = "6"
