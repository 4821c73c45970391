// Command mcpx stands between one agent and many MCP servers: the agent sees two
// tools, inspect and exec.
package main

import "mcpx/cmd/internal/cli"

func main() { cli.Main("mcpx") }
