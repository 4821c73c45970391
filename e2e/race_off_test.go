//go:build !race

package e2e

// race reports whether the tests, and so the binary, are built with -race.
const race = false

// largeText is the size of a large content.
const largeText = 10 << 20

// manyCalls is how many calls each of many clients has in flight.
const manyCalls = 100

// atOnce is how many tests run side by side; most of them only wait.
const atOnce = "16"
