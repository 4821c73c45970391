// Package app puts the parts together.
package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/child"
	"mcpx/internal/listcache"
	"mcpx/internal/logging"
	"mcpx/registry"
	"mcpx/server"
	"mcpx/server/front"
)

// App is one or several profiles of a config, ready to run, and the parts that they
// share.
type App struct {
	Profiles []*Profile

	config  *config.Config
	stderr  io.Writer
	log     *logging.Log
	watcher *child.Watcher
	metrics *metrics // nil unless mcpx serves over HTTP
	memory  *releaser

	headStart context.Context // the upstreams start when it ends; nil: at once
	listed    func()          // ends headStart
}

// Profile is a profile of the config and the parts that serve it.
type Profile struct {
	*config.Profile
	Registry *registry.Registry
	Executor *executor.Executor
}

// New puts the parts together for the named profile, or for every enabled profile if
// the name is empty. Nothing runs yet.
func New(c *config.Config, profile string, stderr io.Writer) (*App, error) {
	chosen, err := choose(c, profile)
	if err != nil {
		return nil, err
	}
	a := &App{config: c, stderr: stderr}
	if a.log, err = logging.New(logging.Options{Level: c.Logging.Level, Format: c.Logging.Format, File: c.Logging.File}, stderr); err != nil {
		return nil, err
	}
	a.watcher = child.NewWatcher(a.log.Logger)
	a.memory = newReleaser()
	var cache *listcache.Cache
	if folder, err := os.UserCacheDir(); err == nil { // otherwise there is no home
		cache = listcache.New(filepath.Join(folder, "mcpx", "catalog"), a.log.Logger)
	}
	for _, p := range chosen {
		r := registry.New(p, registry.Options{
			Log:            a.log.Logger,
			Version:        Version(),
			MessageBytes:   c.Limits.MessageBytes,
			ConnectsAtOnce: cmp.Or(c.Limits.ConnectsAtOnce, max(4, 2*runtime.NumCPU())),
			Watcher:        a.watcher,
			Cache:          cache,
			Compile:        executor.Compile,
		})
		e := executor.New(r, c, p, executor.Options{Log: a.log.Logger, Observe: a.observe})
		a.Profiles = append(a.Profiles, &Profile{Profile: p, Registry: r, Executor: e})
	}
	return a, nil
}

// choose returns the named profile, or every enabled profile if the name is empty.
func choose(c *config.Config, name string) ([]*config.Profile, error) {
	if name != "" {
		p, err := c.Profile(name)
		return []*config.Profile{p}, err
	}
	var profiles []*config.Profile
	for i := range c.Profiles {
		if c.Profiles[i].Enabled {
			profiles = append(profiles, &c.Profiles[i])
		}
	}
	if len(profiles) == 0 {
		return nil, fmt.Errorf("%s: no schema is enabled", c.File)
	}
	return profiles, nil
}

// Run runs the upstreams while use runs. When it returns, all of them have stopped
// and the log is written.
func (a *App) Run(ctx context.Context, use func(ctx context.Context) error) error {
	upstreams, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var running sync.WaitGroup
	for _, p := range a.Profiles {
		running.Go(func() {
			if a.headStart != nil {
				<-a.headStart.Done()
			}
			_ = p.Registry.Run(upstreams)
		})
	}
	running.Go(func() { a.memory.run(upstreams) })
	err := use(ctx)
	stop()
	running.Wait()
	a.watcher.Close()
	_ = a.log.Close()
	return err
}

// headStartTime is how long the upstreams wait for the front's first tools/list: many
// processes that start at once leave it no processor. In BenchmarkStart the list takes 12
// to 14 ms with 10 upstreams; without the head start it takes 21.
const headStartTime = 25 * time.Millisecond

// giveHeadStart lets the front answer tools/list before the upstreams start.
func (a *App) giveHeadStart() {
	a.headStart, a.listed = context.WithTimeout(context.Background(), headStartTime)
}

// ServeStdio serves one client on a pair of pipes until it goes or ctx ends.
func (a *App) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := a.handleHangup(ctx)
	defer stop()
	p := a.Profiles[0]
	a.warn()
	a.ready("stdio", p).Msg("JSON-RPC 2.0 ready on stdin and stdout")
	a.giveHeadStart()
	defer a.listed()
	stdio := &front.Stdio{
		Server:       a.server(p, server.Options{SetLevel: a.log.SetLevel}),
		In:           in,
		Out:          out,
		MessageBytes: a.config.Limits.MessageBytes,
		Calls:        a.config.Limits.CallsPerClient,
		UnreadBytes:  a.config.Limits.UnreadBytes,
		Timeout:      a.config.Stdio.Timeout,
	}
	return a.Run(ctx, stdio.Run)
}

// server returns what a front serves of a profile.
func (a *App) server(p *Profile, o server.Options) *server.Server {
	o.Log, o.Version, o.AlwaysLoad, o.Listed = a.log.Logger, Version(), a.config.AlwaysLoad, a.listed
	return server.New(p.Profile, p.Registry, p.Executor, o)
}

// warn logs the warnings of the config.
func (a *App) warn() {
	for _, w := range a.config.Warnings {
		a.log.Warn().Msg(w.String())
	}
}

// ready begins the log line that says what is served.
func (a *App) ready(mode string, p *Profile) *zerolog.Event {
	servers := "none"
	if len(p.Upstreams) > 0 {
		names := make([]string, len(p.Upstreams))
		for i, u := range p.Upstreams {
			names[i] = u.Name
		}
		servers = fmt.Sprintf("%d (%s)", len(names), strings.Join(names, ", "))
	}
	return a.log.Info().Str("version", Version()).Str("mode", mode).Str("config", a.config.File).Str("schema", p.Name).Str("servers", servers)
}

// observe takes note of a call. It may be called concurrently.
func (a *App) observe(e executor.Event) { a.log.Later(func() { a.logCall(e) }) }

// logCall logs and counts a call, in the goroutine of the log. In the path of the call it
// made small calls over HTTP 1 to 5 % slower.
func (a *App) logCall(e executor.Event) {
	a.memory.noteCall()
	if a.metrics != nil {
		a.metrics.observe(e)
	}
	a.log.Info().Str("client", e.Client).Str("request", e.Request).Str("server", e.Server).Str("tool", e.Tool).Str("outcome", e.Outcome).
		Dur("ms", e.Took.Round(10*time.Microsecond)).Int("in", e.BytesIn).Int("out", e.BytesOut).Msg("call")
}
