// Command mcpx-sse is mcpx that serves over HTTP: Streamable HTTP on /mcp,
// legacy SSE on /sse. Releases have a link to mcpx instead.
package main

import "mcpx/cmd/internal/cli"

func main() { cli.Main("mcpx-sse") }
