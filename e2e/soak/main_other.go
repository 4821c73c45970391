//go:build !linux

// Command soak needs /proc, to see what mcpx costs and leaves behind.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "soak: runs on Linux alone")
	os.Exit(2)
}
