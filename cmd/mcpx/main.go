// Command mcpx stands between one agent and many MCP servers: the agent sees two
// tools, inspect and exec. Started as mcpx-sse, through a link of that name, it serves over
// HTTP.
package main

import "mcpx/cmd/internal/cli"

func main() { cli.Main("mcpx") }
