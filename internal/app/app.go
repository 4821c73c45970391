// Package app puts the parts together.
package app

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/child"
	"mcpx/internal/footprint"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/logging"
	"mcpx/registry"
	"mcpx/server"
	"mcpx/server/front"
)

// App is one profile of a config, ready to run.
type App struct {
	Config   *config.Config
	Profile  *config.Profile
	Registry *registry.Registry
	Executor *executor.Executor

	*shared
}

// shared is what the profiles of one process have in common.
type shared struct {
	log     zerolog.Logger
	level   *logging.Level
	watcher *child.Watcher
	metrics *metrics // nil where nobody asks for them
	close   func() error

	journal   *journal
	footprint *footprint.Keeper
	headStart chan struct{} // closed when the front has had it; nil if there is none
}

// New puts the parts for a profile together. Nothing runs yet.
func New(c *config.Config, profile string, stderr io.Writer) (*App, error) {
	p, err := c.Profile(profile)
	if err != nil {
		return nil, err
	}
	s, err := share(c, stderr)
	if err != nil {
		return nil, err
	}
	return s.app(c, p), nil
}

func share(c *config.Config, stderr io.Writer) (*shared, error) {
	log, level, closeLog, err := logging.New(logging.Options(c.Logging), stderr)
	if err != nil {
		return nil, err
	}
	s := &shared{log: log, level: level, close: closeLog, watcher: child.NewWatcher(log), footprint: footprint.NewKeeper(jsonrpc.DropBuffers)}
	s.journal = newJournal(s.logCall)
	return s, nil
}

func (s *shared) app(c *config.Config, p *config.Profile) *App {
	r := registry.New(p, registry.Options{
		Log:            s.log,
		Version:        Version(),
		MessageBytes:   c.Limits.MessageBytes,
		ConnectsAtOnce: c.Limits.ConnectsAtOnce,
		Watcher:        s.watcher,
		Compile:        executor.Compile,
	})
	return &App{Config: c, Profile: p, Registry: r, shared: s, Executor: executor.New(r, c, p, executor.Options{Log: s.log, Observe: s.journal.note})}
}

// With runs the upstreams for as long as use does. When it returns, every one
// of them is stopped.
func (a *App) With(ctx context.Context, use func(ctx context.Context) error) error {
	return a.with(ctx, []*App{a}, use)
}

// with is With for several profiles.
func (s *shared) with(ctx context.Context, apps []*App, use func(ctx context.Context) error) error {
	upstreams, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var running sync.WaitGroup
	for _, a := range apps {
		running.Go(func() {
			s.wait()
			_ = a.Registry.Run(upstreams)
		})
	}
	running.Go(func() { s.footprint.Run(upstreams) })
	running.Go(func() { s.journal.run(upstreams) })
	err := use(ctx)
	stop()
	running.Wait()
	s.journal.flush() // of calls that ended with their upstream
	s.watcher.Close()
	_ = s.close()
	return err
}

// giveHeadStart lets the front answer the first tools/list before the upstreams
// are started: a hundred processes that start at once leave it no processor. It
// returns what ends that.
func (s *shared) giveHeadStart() (listed func()) {
	s.headStart = make(chan struct{})
	return sync.OnceFunc(func() { close(s.headStart) })
}

// headStartTime is the most that the upstreams wait.
const headStartTime = 25 * time.Millisecond

func (s *shared) wait() {
	if s.headStart == nil {
		return
	}
	select {
	case <-s.headStart:
	case <-time.After(headStartTime):
	}
}

// ServeStdio serves one client on a pair of pipes until it goes or ctx ends.
func (a *App) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := a.handleHangup(ctx)
	defer stop()
	a.warn(a.Config)
	a.log.Info().Str("version", Version()).Str("mode", "stdio").Str("config", a.Config.File).Str("schema", a.Profile.Name).
		Str("servers", a.servers()).Msg("JSON-RPC 2.0 ready on stdin and stdout")
	front := &front.Stdio{
		Server:       server.New(a.Profile, a.Registry, a.Executor, server.Options{Log: a.log, Version: Version(), AlwaysLoad: a.Config.AlwaysLoad, SetLevel: a.setLevel, Listed: a.giveHeadStart()}),
		In:           in,
		Out:          out,
		MessageBytes: a.Config.Limits.MessageBytes,
		Calls:        a.Config.Limits.CallsPerClient,
		UnreadBytes:  a.Config.Limits.UnreadBytes,
		Timeout:      a.Config.Stdio.Timeout,
	}
	return a.With(ctx, front.Run)
}

// setLevel changes what is logged, of calls too: not of those before.
func (s *shared) setLevel(level string) {
	s.journal.flush()
	s.level.Set(level)
}

func (s *shared) warn(c *config.Config) {
	for _, w := range c.Warnings {
		s.log.Warn().Msg(w.String())
	}
}

func (a *App) servers() string {
	names := make([]string, len(a.Profile.Upstreams))
	for i, u := range a.Profile.Upstreams {
		names[i] = u.Name
	}
	if len(names) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d (%s)", len(names), strings.Join(names, ", "))
}

// logCall writes the one line of a call, and counts it.
func (s *shared) logCall(e executor.Event) {
	s.footprint.Moved()
	if s.metrics != nil {
		s.metrics.observe(e)
	}
	s.log.Info().Str("client", e.Client).Str("request", e.Request).Str("server", e.Server).Str("tool", e.Tool).Str("outcome", e.Outcome).
		Dur("ms", e.Took.Round(10*time.Microsecond)).Int("in", e.BytesIn).Int("out", e.BytesOut).Msg("call")
}
