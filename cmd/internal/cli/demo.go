package cli

import (
	"fmt"
	"slices"

	"mcpx/internal/ansi"
	"mcpx/internal/app"
	"mcpx/internal/demo"
)

// demoCmd serves one of the built-in MCP servers, or shows a tour of mcpx with all of
// them.
type demoCmd struct {
	Demo   string `arg:"" optional:"" help:"Serve this one on stdin and stdout: time, files or show. Without it: the tour."`
	Folder string `arg:"" optional:"" help:"For files: the folder to show; without it, the working directory."`
}

func (demoCmd) Help() string {
	return `The tour takes a few seconds. It starts the built-in servers, runs real commands, and shows each command so that you can repeat it.

Examples:
  mcpx demo                   the tour
  mcpx demo time              serve the server "time", as an MCP client starts it
  mcpx demo files ~/notes     serve the files of a folder, read-only

In a config, ${MCPX} is mcpx itself: {"mcpServers": {"time": {"command": "${MCPX}", "args": ["demo", "time"]}}}`
}

func (c *demoCmd) Run(t *terminal) error {
	switch {
	case c.Demo == "":
		return tour(t)
	case !slices.Contains(demo.Names(), c.Demo):
		return unknownName("demo", c.Demo, demo.Names())
	case c.Folder != "" && c.Demo != "files":
		return usageError{fmt.Errorf("the demo %s takes no folder; only files does", c.Demo)}
	}
	if ansi.IsTerminal(t.stdin) {
		fmt.Fprintln(t.stderr, "mcpx: waiting for JSON-RPC on stdin, as an MCP client sends it; \"mcpx demo\" is for people. Ctrl-D ends it.")
	}
	return demo.Serve(t.ctx, c.Demo, demo.Options{Version: app.Version(), Folder: c.Folder}, t.stdin, t.stdout.file)
}
