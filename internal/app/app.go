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
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/atomicfile"
	"mcpx/internal/listcache"
	"mcpx/internal/logging"
	"mcpx/internal/parts/audit"
	"mcpx/internal/parts/lock"
	"mcpx/internal/parts/metrics"
	"mcpx/internal/parts/replicas"
	"mcpx/internal/parts/replicas/redis"
	"mcpx/internal/parts/search"
	"mcpx/internal/parts/signin"
	"mcpx/internal/parts/traces"
	"mcpx/internal/seal"
	"mcpx/internal/tasks"
	"mcpx/internal/work"
	"mcpx/registry"
	"mcpx/registry/child"
	"mcpx/registry/lists"
	"mcpx/registry/live"
	"mcpx/server"
	"mcpx/server/stdio"
)

// App is one or several profiles of a config, ready to run, and the parts that they
// share.
type App struct {
	// Load reads the config file again, for Reload. If it is nil, there is no file.
	Load      func() (*config.Config, error)
	Accounts  *signin.Accounts // sign in to upstreams
	Stateless bool             // the HTTP front keeps no client sessions
	// Repaired is called after mcpx has repaired the permissions of a file or folder that other
	// users could read. If it is nil, mcpx logs a warning. It may be called concurrently.
	Repaired atomicfile.Repaired

	profiles atomic.Pointer[[]*Profile]
	config   *config.Config
	profile  string // the profile that was asked for; empty: all
	stderr   io.Writer
	log      *logging.Log
	watcher  *child.Watcher
	cache    *listcache.Cache // may be nil
	address  string           // of the HTTP front, as people reach it; empty without one
	metrics  *metrics.Metrics // nil unless mcpx serves over HTTP
	audit    *audit.Audit
	search   *search.Search
	memory   *releaser
	work     *work.Budget       // for work on large results; all profiles share it
	store    *redis.Store       // shared with other replicas; nil unless the config has one
	replicas *replicas.Replicas // nil without a session key or an HTTP front
	tracer   *traces.Tracer     // nil unless the environment names a collector

	isLocked  bool            // the lock file counts
	approvals *lock.Approvals // of the config; nil if the lock file does not count

	headStart context.Context // the upstreams start when it ends; nil: at once
	listed    func()          // ends headStart

	tasks     tasks.Group     // goroutines of Run
	upstreams context.Context // ends when the upstreams must stop; set by Run
	reload    reloading
}

// Profile is a profile of the config and the parts that serve it.
type Profile struct {
	*config.Profile
	Registry *registry.Registry
	Executor *executor.Executor
}

// New puts the parts together for the named profile, or for every enabled profile if
// the name is empty. Nothing runs yet. The lock file does not count.
func New(c *config.Config, profile string, stderr io.Writer) (*App, error) {
	return assemble(&App{config: c, profile: profile, stderr: stderr})
}

// NewLocked is New for servers that are used: the lock file counts.
func NewLocked(c *config.Config, profile string, stderr io.Writer) (*App, error) {
	return assemble(&App{config: c, profile: profile, stderr: stderr, isLocked: true})
}

func assemble(a *App) (*App, error) {
	c := a.config
	chosen, err := choose(c, a.profile)
	if err != nil {
		return nil, err
	}
	a.readLock(c)
	if a.log, err = logging.New(logging.Options{Level: c.Logging.Level, Format: c.Logging.Format, File: c.Logging.File}, a.stderr); err != nil {
		return nil, err
	}
	if a.audit, err = audit.Open(audit.Section.Of(c.Logging.Parts).File, a.log); err != nil {
		_ = a.log.Close()
		return nil, err
	}
	a.watcher = child.NewWatcher(a.log.Logger)
	a.memory = newReleaser()
	a.tracer = traces.New(Version(), a.log.Logger)
	if folder, err := os.UserCacheDir(); err == nil { // otherwise there is no home
		a.cache = listcache.New(filepath.Join(folder, "mcpx", "catalog"), filepath.Join(atomicfile.StateFolder(), "catalog-key"), a.log.Logger)
		a.cache.OnRepair(a.repaired)
	}
	a.search = newSearch(c, a.log.Logger)
	if a.store, err = openStore(c, redis.Options{Log: a.log.Logger}); err != nil {
		_ = a.log.Close()
		_ = a.audit.Close()
		return nil, err
	}
	a.work = work.New(c.Limits.WorkBytes)
	a.Accounts = signin.New(openTokens(c, a.store, a.repaired), a.log.Logger)
	var profiles []*Profile
	for _, p := range chosen {
		profiles = append(profiles, a.newProfile(c, p))
	}
	a.profiles.Store(&profiles)
	return a, nil
}

// repaired reports that other users could read a file or folder.
func (a *App) repaired(path string) {
	if a.Repaired != nil {
		a.Repaired(path)
		return
	}
	a.log.Warn().Str("path", path).Msg("other users could read this file or folder; mcpx has repaired its permissions")
}

// Profiles returns the profiles that are served, in the order of the config.
func (a *App) Profiles() []*Profile { return *a.profiles.Load() }

// newProfile puts the parts of a profile together.
func (a *App) newProfile(c *config.Config, p *config.Profile) *Profile {
	options := a.registryOptions(c, p)
	r := registry.New(p, options)
	if a.tracer != nil {
		r.Tracer = a.tracer
	}
	e := executor.New(r, c, p, executor.Options{Log: options.Log, Observers: a.observers(), SignIn: a.guide(c, p).Asker(r, options.Log), Tools: builtinTools(a.search), Work: a.work})
	return &Profile{Profile: p, Registry: r, Executor: e}
}

// registryOptions returns the options of a profile's registry. If several profiles are
// served, its log lines name the profile.
func (a *App) registryOptions(c *config.Config, p *config.Profile) registry.Options {
	log := a.log.Logger
	if served, _ := choose(c, a.profile); len(served) > 1 {
		log = log.With().Str("schema", p.Name).Logger()
	}
	return registry.Options{
		Log:            log,
		Version:        Version(),
		MessageBytes:   c.Limits.MessageBytes,
		ConnectsAtOnce: cmp.Or(c.Limits.ConnectsAtOnce, max(4, 2*runtime.NumCPU())),
		Watcher:        a.watcher,
		Cache:          a.cache,
		Account:        a.Accounts.Hook,
		SignIn:         a.guide(c, p).How,
		Views:          func(u *config.Upstream) lists.Views { return a.views(p.Name, u) },
		ListObserver:   lock.NewObserver,
		Compile:        executor.Compile,
	}
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
		return nil, fmt.Errorf("%s: no profile is enabled", c.File)
	}
	return profiles, nil
}

// Run runs the upstreams while use runs. When it returns, all of them have stopped
// and the log is written.
func (a *App) Run(ctx context.Context, use func(ctx context.Context) error) error {
	upstreams, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	a.allowReload(ctx, upstreams)
	for _, p := range a.Profiles() {
		a.tasks.Go(func() {
			if a.headStart != nil {
				<-a.headStart.Done()
			}
			_ = p.Registry.Run(upstreams)
		})
	}
	a.tasks.Go(func() { a.memory.run(upstreams) })
	a.runReplicas(upstreams)
	err := use(ctx)
	stop()
	a.tasks.Go(a.tracer.Close) // while the upstreams stop
	a.tasks.Close()
	a.search.Close()
	a.closeStore()
	a.watcher.Close()
	_ = a.log.Close() // the last calls are written to the audit then
	_ = a.audit.Close()
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
	p := a.Profiles()[0]
	a.warn()
	a.ready("stdio", p).Msg("JSON-RPC 2.0 ready on stdin and stdout")
	a.giveHeadStart()
	defer a.listed()
	options := a.serverOptions()
	options.SetLevel = a.log.SetLevel
	front := &stdio.Front{
		Server:  server.New(p.Profile, p.Registry, p.Executor, options),
		In:      in,
		Out:     out,
		Limits:  a.config.Limits,
		Timeout: a.config.Stdio.Timeout,
		Freed:   a.memory.releaseSoon,
	}
	a.tracer.Start()
	return a.Run(ctx, front.Run)
}

// serverOptions returns the options of what a front serves.
func (a *App) serverOptions() server.Options {
	o := server.Options{Log: a.log.Logger, Version: Version(), AlwaysLoad: a.config.AlwaysLoad, Listed: a.listed}
	if a.tracer != nil {
		o.Tracer = a.tracer
	}
	if keys := a.config.Server.SessionKeys; len(keys) > 0 {
		o.Rounds = seal.New(seal.Round, keys)
	}
	return o
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

// ToolLists are the tool lists of a profile in a client's context: those of its upstreams
// without mcpx, and one with it.
type ToolLists struct {
	Profile   *Profile
	Upstreams []*live.Upstream
	With      []byte
}

// ToolLists returns the lists of all profiles. It waits until every upstream is ready or
// has failed, or ctx ends.
func (a *App) ToolLists(ctx context.Context) []ToolLists {
	var all []ToolLists
	for _, p := range a.Profiles() {
		lists := ToolLists{Profile: p, With: server.New(p.Profile, p.Registry, p.Executor, server.Options{Version: Version()}).FirstTexts(nil)}
		for _, u := range p.Upstreams {
			lists.Upstreams = append(lists.Upstreams, p.Registry.Settled(ctx, u.Name))
		}
		all = append(all, lists)
	}
	return all
}

// Version is mcpx's version: what the build says, or what the module is.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// version is set by the linker in a release.
var version string
