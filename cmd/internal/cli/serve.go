package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"mcpx/config"
	"mcpx/internal/app"
)

// serveCmd serves one client on stdin and stdout, or any number over HTTP.
type serveCmd struct {
	configFile
	Profile string `name:"schema" env:"MCPX_SCHEMA" placeholder:"NAME" help:"The profile to serve. Default: \"default\" on stdin and stdout, every enabled profile over HTTP."`
	Stdio   bool   `xor:"front" help:"Serve on stdin and stdout (the default of mcpx)."`
	HTTP    bool   `xor:"front" name:"http" help:"Serve over HTTP (the default of mcpx-sse, and with --port or --host)."`
	httpFlags
	Expose string `enum:"lazy,flat," default:"" env:"MCPX_EXPOSE" placeholder:"HOW" help:"lazy: the tools inspect and exec. flat: every tool as Server__tool."`
	logFlags
}

func (serveCmd) Help() string {
	return `Examples:
  mcpx mcpx.json                            on stdin and stdout, as an MCP client starts it
  mcpx mcpx.json --schema work              another profile of the file
  mcpx mcpx.json --expose flat              every tool by its name, instead of inspect and exec
  mcpx-sse mcpx.json --port 8000            over HTTP: http://127.0.0.1:8000/mcp
  mcpx-sse mcpx.json --host 0.0.0.0 --token-file token.txt`
}

// httpFlags are the flags of the HTTP front. They override the config.
type httpFlags struct {
	Host      string  `env:"MCPX_HOST" placeholder:"HOST" help:"Address to listen on (127.0.0.1)."`
	Port      *port   `env:"MCPX_PORT" placeholder:"PORT" help:"Port to listen on (8000); 0 means any free port."`
	TokenFile *string `env:"MCPX_TOKEN_FILE" placeholder:"FILE" help:"File with the bearer token that clients must send; or set MCPX_TOKEN."`
	Stateless bool    `env:"MCPX_STATELESS" help:"Keep no client sessions, so that any replica can respond."`
}

// port is a TCP port.
type port uint16

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *port) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 16)
	if err != nil {
		return fmt.Errorf("%q is not a port; use a number from 0 to 65535, where 0 means any free port", text)
	}
	*p = port(n)
	return nil
}

func (f httpFlags) apply(s *config.Server) error {
	s.Host = cmp.Or(f.Host, s.Host)
	if f.Port != nil {
		s.Port = int(*f.Port)
	}
	if token, ok := os.LookupEnv("MCPX_TOKEN"); ok {
		if s.Token = token; token == "" {
			return errors.New("MCPX_TOKEN is empty; set it to the token that clients must send, or unset it")
		}
	}
	if f.TokenFile == nil {
		return nil
	}
	if *f.TokenFile == "" {
		return errors.New("the token file has no name; name it with --token-file or MCPX_TOKEN_FILE, or unset that variable")
	}
	text, err := config.ReadFile(*f.TokenFile, config.MaxBytes)
	if err != nil {
		return fmt.Errorf("the token file cannot be read: %w", err)
	}
	if s.Token = strings.TrimSpace(string(text)); s.Token == "" {
		return fmt.Errorf("the token file %s is empty", *f.TokenFile)
	}
	return nil
}

// logFlags are the flags of mcpx's own log. They override the config.
type logFlags struct {
	LogLevel  string `enum:"debug,info,warn,error," default:"" env:"MCPX_LOG_LEVEL" placeholder:"LEVEL" help:"debug, info, warn or error."`
	LogFormat string `enum:"console,json," default:"" env:"MCPX_LOG_FORMAT" placeholder:"FORMAT" help:"console or json."`
	LogFile   string `env:"MCPX_LOG_FILE" placeholder:"FILE" help:"Log to this file instead of stderr."`
}

func (f logFlags) apply(l *config.Logging) {
	l.Level, l.Format, l.File = cmp.Or(f.LogLevel, l.Level), cmp.Or(f.LogFormat, l.Format), cmp.Or(f.LogFile, l.File)
}

func (c *serveCmd) Run(t *invocation, k *kong.Context) error {
	named := addressFlag(k)
	if named != "" && c.Stdio {
		fmt.Fprintf(t.Stderr, "warning: %s has no effect with --stdio\n", named)
	}
	c.HTTP = !c.Stdio && (c.HTTP || named != "" || t.isHTTP)
	load := func() (*config.Config, error) { return c.load(t) }
	file, err := load()
	if err != nil {
		return err
	}
	if err := c.check(file); err != nil {
		return usageError{err}
	}
	a, err := app.NewLocked(file, c.Profile, t.Stderr)
	if err != nil {
		return usageError{err}
	}
	a.Load, a.Stateless = load, c.Stateless
	if c.HTTP {
		return a.ListenHTTP(t.Ctx)
	}
	if t.Keyboard() != nil {
		fmt.Fprintln(t.Stderr, "mcpx: waiting for JSON-RPC on stdin, as an MCP client sends it. To try a server yourself: mcpx inspect SERVER. Ctrl-D ends mcpx.")
	}
	return a.ServeStdio(t.Ctx, t.Stdin, t.Stdout.File)
}

// load reads the config. The flags override it. A reload reads the same file.
func (c *serveCmd) load(t *invocation) (*config.Config, error) {
	file, err := t.load(c.Path)
	if err != nil {
		return nil, err
	}
	c.Path = file.File
	c.logFlags.apply(&file.Logging)
	if c.Expose != "" {
		for i := range file.Profiles {
			file.Profiles[i].Expose = config.Expose(c.Expose)
		}
	}
	if !c.HTTP {
		return file, nil
	}
	if err := c.httpFlags.apply(&file.Server); err != nil {
		return nil, usageError{err}
	}
	return file, nil
}

// check returns why the config cannot be served as the flags say. On stdin and stdout it
// sets the profile to serve.
func (c *serveCmd) check(file *config.Config) error {
	if c.HTTP {
		return app.CheckBind(file)
	}
	c.Profile = cmp.Or(c.Profile, "default")
	if _, err := file.Profile(c.Profile); err != nil {
		return fmt.Errorf("%w\nexample: mcpx %s --schema %s", err, file.File, file.Profiles[0].Name)
	}
	return nil
}

// addressFlag returns the flag that sets an address to listen on, "" if there is none.
// Environment variables do not count: they may be meant for another program.
func addressFlag(k *kong.Context) string {
	for _, word := range k.Path {
		if word.Flag != nil && (word.Flag.Name == "port" || word.Flag.Name == "host") {
			return "--" + word.Flag.Name
		}
	}
	return ""
}
