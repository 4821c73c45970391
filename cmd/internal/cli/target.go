package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/app"
	"mcpx/internal/jsonrpc"
	"mcpx/registry"
)

// target is what commands about one server have in common: a server of a config.
type target struct {
	Path   string `arg:"" name:"config" help:"Config file. Without it: $$MCPX_CONFIG, ./mcpx.json, then ~/.config/mcpx/config.json."`
	Server string `arg:"" help:"Name of a server, or mcpx for the built-in one. Not for a server given by its url or, after --, its command."`
	Flag   string `name:"config" placeholder:"FILE" help:"The config file, if it is not the first argument."`
	adHocFlags
	Schema   string `default:"default" env:"MCPX_SCHEMA" help:"The schema of the config to use (${default})."`
	LogLevel string `enum:"debug,info,warn,error" default:"error" env:"MCPX_LOG_LEVEL" help:"debug, info, warn or error (${default})."`

	startAll bool // the built-in server is asked about the other servers
}

// talk is a command's time with its server.
type talk struct {
	*app.App
	server string
	status *status
}

// errInterrupted is the end of a command that a person did not wait for.
var errInterrupted = errors.New("interrupted; what was under way was cancelled")

// with runs use with the one server of the config that is asked for.
func (c *target) with(t *terminal, use func(ctx context.Context, s *talk) error) error {
	file, err := t.load(c.Path)
	if err != nil {
		return err
	}
	if err := c.apply(t); err != nil {
		return err
	}
	file.Logging.Level = c.LogLevel
	file.Limits.ResultTokens = 0 // a handle would end with the command
	p, err := file.Profile(c.Schema)
	if err != nil {
		return usageError{err}
	}
	c.startOnly(p)
	s := &talk{server: c.Server, status: newStatus(t.stderr)}
	if s.App, err = app.New(file, c.Schema, s.status); err != nil {
		return usageError{err}
	}
	if c.Server != executor.Builtin && s.Registry.Catalog().Upstream(c.Server) == nil {
		_, err := s.Executor.Upstream(t.ctx, c.Server) // nothing needs to start to say so
		return err
	}
	return s.run(t, use)
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

func (s *talk) run(t *terminal, use func(ctx context.Context, s *talk) error) error {
	defer context.AfterFunc(t.ctx, t.release)()
	stop := func() {}
	defer func() { stop() }()
	return s.With(t.ctx, func(ctx context.Context) error {
		err := s.started(ctx)
		if err == nil {
			err = use(ctx, s)
		}
		if ctx.Err() != nil {
			t.release() // before the person can see that there is something to end
		}
		stop = s.status.show(func() string { return "stopping " + s.server + "…" })
		if ctx.Err() != nil && err != nil {
			return errInterrupted
		}
		if down := new(registry.Unavailable); errors.As(err, &down) {
			down.RetryAt = time.Time{} // the command ends before any further try
		}
		return err
	})
}

// startTime is what a command about all servers gives them to start.
const startTime = 30 * time.Second

// started waits while the server starts, and says so. Only the end of ctx is an
// error here: what the server is asked tells why it is not there.
func (s *talk) started(ctx context.Context) error {
	stop := s.status.show(func() string { return starting(s.Registry.Catalog().Upstreams, s.server) })
	defer stop()
	if s.server == executor.Builtin {
		s.Executor.Settle(ctx, startTime) // it speaks of all the others
		return ctx.Err()
	}
	s.Registry.Settled(ctx, s.server)
	return ctx.Err()
}

// ask sends the server a request of MCP.
func (s *talk) ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	stop := s.status.show(func() string { return "waiting for " + s.server + "…" })
	defer stop()
	result, err := s.Registry.Call(ctx, s.server, registry.Request{Method: method, Params: params, Meta: []byte("{}")})
	var own *jsonrpc.Error
	if errors.As(err, &own) {
		return nil, &executor.UpstreamError{Server: s.server, Err: own}
	}
	return result, err
}

// adHocFlags are for a server that is in no config.
type adHocFlags struct {
	Header []string `sep:"none" placeholder:"'NAME: VALUE'" help:"A header for a server given by its url. May be given several times."`
}

func (f adHocFlags) apply(t *terminal) error {
	if len(f.Header) == 0 {
		return nil
	}
	if t.adhoc == nil || t.adhoc.Profiles[0].Upstreams[0].URL == "" {
		return usageError{withHint(errors.New("--header is only for a server given by its url"), `in a config, use "headers"`)}
	}
	headers := map[string]string{}
	for _, header := range f.Header {
		name, value, ok := strings.Cut(header, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return usageError{withHint(fmt.Errorf("--header %q has no name", header), "example: --header 'Authorization: Bearer TOKEN'")}
		}
		headers[name] = strings.TrimSpace(value)
	}
	t.adhoc.Profiles[0].Upstreams[0].SetHeaders(headers)
	return nil
}
