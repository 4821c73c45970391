package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/mattn/go-isatty"

	"mcpx/config"
	"mcpx/internal/app"
)

// serveCmd serves one client on stdin and stdout, or any number over HTTP.
type serveCmd struct {
	Path   string `arg:"" optional:"" name:"config" help:"Config file. Without it: $$MCPX_CONFIG, ./mcpx.json, then $$XDG_CONFIG_HOME/mcpx/config.json."`
	Schema string `env:"MCPX_SCHEMA" placeholder:"NAME" help:"The schema of the config to serve: on stdin and stdout \"default\" if none is named, over HTTP all that are enabled."`
	Stdio  bool   `xor:"front" help:"Serve on stdin and stdout."`
	HTTP   bool   `xor:"front" name:"http" help:"Serve over HTTP."`
	httpFlags
	Expose string `enum:"lazy,flat," default:"" env:"MCPX_EXPOSE" placeholder:"HOW" help:"lazy: the tools inspect and exec. flat: every tool as Server__tool."`
	logFlags
}

// Help is shown below the flags.
func (serveCmd) Help() string {
	return `Examples:
  mcpx mcpx.json                            on stdin and stdout, as an MCP client starts it
  mcpx mcpx.json --schema work              another schema of the file
  mcpx mcpx.json --expose flat              every tool by its name, instead of inspect and exec
  mcpx-sse mcpx.json --port 8000            over HTTP: http://127.0.0.1:8000/mcp
  mcpx-sse mcpx.json --host 0.0.0.0 --token-file token.txt`
}

// httpFlags are the flags of the HTTP front; what is given wins over the config.
type httpFlags struct {
	Host      string `env:"MCPX_HOST" placeholder:"HOST" help:"Address to listen on (127.0.0.1)."`
	Port      *int   `env:"MCPX_PORT" placeholder:"PORT" help:"Port to listen on (8000); 0 takes any free one."`
	TokenFile string `env:"MCPX_TOKEN_FILE" placeholder:"FILE" help:"File with the bearer token that clients must send; or set MCPX_TOKEN."`
	Stateless bool   `env:"MCPX_STATELESS" help:"Keep no sessions, so that any replica can answer."`
}

func (f httpFlags) apply(s *config.Server) error {
	if f.Host != "" {
		s.Host = f.Host
	}
	if f.Port != nil {
		if *f.Port < 0 || *f.Port > 65535 {
			return fmt.Errorf("--port %d: a port is a number from 0 to 65535; 0 takes any free one", *f.Port)
		}
		s.Port = *f.Port
	}
	if token := os.Getenv("MCPX_TOKEN"); token != "" {
		s.Token = token
	}
	if f.TokenFile == "" {
		return nil
	}
	text, err := config.ReadFile(f.TokenFile, config.MaxBytes)
	if err != nil {
		return fmt.Errorf("the token file cannot be read: %w", err)
	}
	if s.Token = strings.TrimSpace(string(text)); s.Token == "" {
		return fmt.Errorf("the token file %s is empty", f.TokenFile)
	}
	return nil
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
	c.logFlags.apply(&file.Logging)
	if c.Expose != "" {
		for i := range file.Profiles {
			file.Profiles[i].Expose = config.Expose(c.Expose)
		}
	}
	if c.HTTP || t.http && !c.Stdio {
		if err := c.httpFlags.apply(&file.Server); err != nil {
			return usageError{err}
		}
		web, err := app.NewHTTP(file, app.HTTPOptions{Schema: c.Schema, Stateless: c.Stateless})
		if err != nil {
			return usageError{err}
		}
		return web.Serve(t.ctx, t.stderr)
	}
	return c.stdio(t, file)
}

func (c *serveCmd) stdio(t *terminal, file *config.Config) error {
	schema := cmp.Or(c.Schema, "default")
	if _, err := file.Profile(schema); err != nil {
		return usageError{fmt.Errorf("%w\nexample: mcpx %s --schema %s", err, file.File, file.Profiles[0].Name)}
	}
	a, err := app.New(file, schema, t.stderr)
	if err != nil {
		return usageError{err}
	}
	if f, ok := t.stdin.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		fmt.Fprintln(t.stderr, "mcpx: waiting for JSON-RPC on stdin, as an MCP client sends it; \"mcpx inspect CONFIG SERVER\" is for people. Ctrl-D ends it.")
	}
	return a.ServeStdio(t.ctx, t.stdin, t.stdout)
}
