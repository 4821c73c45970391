//go:build race

package e2e

// race reports whether the tests, and so the binary, are built with -race.
const race = true

// largeText is the size of a large content: with the detector every byte of it
// costs a hundred times as much.
const largeText = 1 << 20

// manyCalls is how many calls each of many clients has in flight: with the detector
// they take ten times as long.
const manyCalls = 20

// atOnce is how many tests run side by side; most of them only wait.
const atOnce = "6"
