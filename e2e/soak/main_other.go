//go:build !linux

// Command soak needs /proc, to measure mcpx and to find processes that were left behind.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "soak: runs on Linux alone")
	os.Exit(2)
}
