package main

import (
	"fmt"
	"os"

	"github.com/mattn/go-isatty"

	"mcpx/config"
	"mcpx/internal/app"
)

// serveCmd serves one client on stdin and stdout.
type serveCmd struct {
	Path   string `arg:"" optional:"" name:"config" help:"Config file. Without it: $$MCPX_CONFIG, ./mcpx.json, then $$XDG_CONFIG_HOME/mcpx/config.json."`
	Schema string `default:"default" env:"MCPX_SCHEMA" help:"The schema of the config to serve (${default})."`
	Stdio  bool   `help:"Serve on stdin and stdout (the default)."`
	Expose string `enum:"lazy,flat," default:"" env:"MCPX_EXPOSE" placeholder:"HOW" help:"lazy: the tools inspect and exec. flat: every tool as Server__tool."`
	logFlags
}

// logFlags are the flags of mcpx's own log; what is given wins over the config.
type logFlags struct {
	LogLevel  string `enum:"debug,info,warn,error," default:"" env:"MCPX_LOG_LEVEL" placeholder:"LEVEL" help:"debug, info, warn or error."`
	LogFormat string `enum:"console,json," default:"" env:"MCPX_LOG_FORMAT" placeholder:"FORMAT" help:"console or json."`
	LogFile   string `env:"MCPX_LOG_FILE" placeholder:"FILE" help:"Log to this file instead of stderr."`
}

func (f logFlags) apply(l *config.Logging) {
	for _, o := range []struct{ flag, setting *string }{
		{&f.LogLevel, &l.Level}, {&f.LogFormat, &l.Format}, {&f.LogFile, &l.File},
	} {
		if *o.flag != "" {
			*o.setting = *o.flag
		}
	}
}

// Run implements the command.
func (c *serveCmd) Run(t *terminal) error {
	file, err := load(c.Path)
	if err != nil {
		return err
	}
	c.apply(&file.Logging)
	if p, err := file.Profile(c.Schema); err == nil && c.Expose != "" {
		p.Expose = config.Expose(c.Expose)
	}
	a, err := app.New(file, c.Schema, t.stderr)
	if err != nil {
		return usageError{fmt.Errorf("%w\nexample: mcpx %s --schema %s", err, file.File, file.Profiles[0].Name)}
	}
	if f, ok := t.stdin.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		fmt.Fprintln(t.stderr, "mcpx: waiting for JSON-RPC on stdin. An MCP client starts it like this: see \"mcpx --help\"; Ctrl-D ends it.")
	}
	return a.ServeStdio(t.ctx, t.stdin, t.stdout)
}
