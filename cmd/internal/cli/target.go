package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"mcpx/cmd/internal/terminal"
	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/app"
	"mcpx/internal/plain"
	"mcpx/internal/rpc"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// target is embedded by the commands about one server of a config.
type target struct {
	configFile
	Server string `arg:"" help:"Name of a server, or mcpx for the built-in one. Leave it out if you give the server's URL or, after --, its command."`
	adHocFlags
	Profile  string `name:"schema" default:"default" env:"MCPX_SCHEMA" help:"The profile of the config to use (${default})."`
	LogLevel string `enum:"debug,info,warn,error" default:"error" env:"MCPX_LOG_LEVEL" help:"debug, info, warn or error (${default})."`

	startAll bool // start all servers for the built-in one
}

// talk is the connection of a command to its server.
type talk struct {
	*app.Profile
	server string
	status *terminal.Status
}

// with starts the server, runs use, and stops the server.
func (c *target) with(t *invocation, use func(ctx context.Context, s *talk) error) error {
	file, err := c.load(t, c.Path, c.LogLevel)
	if err != nil {
		return err
	}
	assemble := app.New
	if t.adhoc == nil {
		assemble = app.NewLocked
	}
	p, err := file.Profile(c.Profile)
	if err != nil {
		return usageError{err}
	}
	c.startOnly(p)
	a, line, err := t.newApp(assemble, file, c.Profile)
	if err != nil {
		return err
	}
	s := &talk{Profile: a.Profiles()[0], server: c.Server, status: line}
	if c.Server != executor.Builtin && s.Registry.Catalog().Upstream(c.Server) == nil {
		_, err := s.Executor.Upstream(t.Ctx, nil, c.Server) // an error, without starting anything
		return c.unknown(err, file)
	}
	stop := func() {}
	defer func() { stop() }()
	return t.run(a, func(ctx context.Context) error {
		err := s.started(ctx, a)
		if err == nil {
			err = use(ctx, s)
		}
		if ctx.Err() != nil {
			t.release() // from here on, a second Ctrl-C ends mcpx at once
		}
		stop = line.Show(func() string { return "stopping " + c.Server + "…" })
		if down, ok := errors.AsType[*live.Unavailable](err); ok {
			down.RetryAt = time.Time{} // the command ends before the next try
		}
		return err
	})
}

// unknown adds advice to the error of a server that the profile does not have or has
// disabled: how to enable it, the profile that has it, or else which file was read.
func (c *target) unknown(err error, file *config.Config) error {
	for _, p := range file.Profiles {
		if p.Name == c.Profile && slices.Contains(p.Disabled(), c.Server) {
			return withHint(err, "enable it: mcpx enable %s --schema %s", plain.Shell(c.Path, c.Server), plain.Shell(c.Profile))
		}
		if p.Enabled && slices.ContainsFunc(p.Upstreams, func(u config.Upstream) bool { return u.Name == c.Server }) {
			return withHint(err, "profile %s has it: --schema %s", p.Name, plain.Shell(p.Name))
		}
	}
	return withHint(err, "the config is %s", file.File)
}

// link returns the command that reads a resource of the server, "" if there is none.
func (c *target) link(t *invocation) string {
	if t.adhoc != nil {
		return ""
	}
	return "mcpx resources " + plain.Shell(c.Path, c.Server)
}

// startOnly removes the upstreams that the command does not need.
func (c *target) startOnly(p *config.Profile) {
	if c.Server == executor.Builtin && !c.startAll {
		p.Upstreams = nil
	}
	for i := range p.Upstreams {
		if c.Server == p.Upstreams[i].Name {
			p.Upstreams = p.Upstreams[i : i+1]
			p.Upstreams[0].Isolation = config.Shared
			return
		}
	}
}

// newApp puts the parts together for a command that runs once, with app.New or app.NewLocked.
// The log and the warnings are written through the status line, to stderr.
func (t *invocation) newApp(assemble assembler, file *config.Config, profile string) (*app.App, *terminal.Status, error) {
	line := terminal.NewStatus(t.Stderr)
	a, err := assemble(file, profile, line)
	if err != nil {
		return nil, nil, usageError{err}
	}
	a.Repaired = func(path string) { warnRepaired(line, path) } // the level of the log hides warnings
	return a, line, nil
}

// assembler is app.New or app.NewLocked.
type assembler func(c *config.Config, schema string, stderr io.Writer) (*app.App, error)

// run runs the servers while use runs. A second Ctrl-C ends mcpx at once.
func (t *invocation) run(a *app.App, use func(ctx context.Context) error) error {
	defer context.AfterFunc(t.Ctx, t.release)()
	return a.Run(t.Ctx, func(ctx context.Context) error {
		err := use(ctx)
		if ctx.Err() != nil && err != nil {
			return terminal.ErrInterrupted
		}
		return err
	})
}

// startTime limits how long a command about all servers waits for them.
const startTime = 30 * time.Second

// started waits until the server has started or failed. It returns an error only if ctx
// ends; the first request to the server explains why it failed.
func (s *talk) started(ctx context.Context, a *app.App) error {
	stop := s.status.Show(func() string { return starting(a, s.server) })
	defer stop()
	if s.server == executor.Builtin {
		s.Executor.Settle(ctx, nil, startTime) // its tools describe all servers
		return ctx.Err()
	}
	s.Registry.Settled(ctx, s.server)
	return ctx.Err()
}

// shownStarting is how many starting servers are named.
const shownStarting = 3

// starting names the servers that are starting: only the given one, or all for an empty
// name and the built-in server. It returns "" when none is starting.
func starting(a *app.App, name string) string {
	var names []string
	for _, p := range a.Profiles() {
		for _, u := range p.Registry.Catalog().Upstreams {
			wanted := name == "" || name == executor.Builtin || name == u.Name
			if wanted && u.State == live.Starting {
				names = append(names, u.Name)
			}
		}
	}
	text := strings.Join(names[:min(len(names), shownStarting)], ", ")
	switch {
	case len(names) == 0:
		return ""
	case len(names) > shownStarting:
		text = fmt.Sprintf("%s and %d more", text, len(names)-shownStarting)
	}
	return "starting " + text + "…"
}

// ask sends the server a request.
func (s *talk) ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	stop := s.status.Show(func() string { return "waiting for " + s.server + "…" })
	defer stop()
	result, err := s.Registry.Call(ctx, s.server, upstream.Request{Method: method, Params: params, Meta: []byte("{}")})
	if own, ok := errors.AsType[*rpc.Error](err); ok {
		return nil, &executor.UpstreamError{Server: s.server, Err: own}
	}
	return result, err
}

// adHocFlags are flags for a server that is not in a config.
type adHocFlags struct {
	Header []string `sep:"none" placeholder:"'NAME: VALUE'" help:"HTTP header for a server given by its URL. May be given several times."`
}

// load reads the config and sets the headers of a server that is not in it.
func (f adHocFlags) load(t *invocation, path, logLevel string) (*config.Config, error) {
	file, err := t.load(path)
	if err != nil {
		return nil, err
	}
	file.ForOneCommand(logLevel)
	if len(f.Header) == 0 {
		return file, nil
	}
	if t.adhoc == nil || t.adhoc.Profiles[0].Upstreams[0].URL == "" {
		return nil, usageError{withHint(errors.New("--header is only for a server given by its url"), `in a config, use "headers"`)}
	}
	headers, err := parseHeaders(f.Header)
	t.adhoc.Profiles[0].Upstreams[0].SetHeaders(headers)
	return file, err
}
