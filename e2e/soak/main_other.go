//go:build !linux

// Command soak needs /proc to measure mcpx and find its processes.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "soak: runs on Linux alone")
	os.Exit(2)
}
