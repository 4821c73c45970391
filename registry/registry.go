// Package registry runs the upstreams of a profile: it starts them, keeps sessions to
// them, caches their lists of tools, prompts and resources, and restarts those that fail.
package registry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"mcpx/config"
	"mcpx/internal/auth"
	"mcpx/internal/child"
	"mcpx/internal/listcache"
	"mcpx/internal/tasks"
	"mcpx/internal/telemetry"
	"mcpx/registry/lists"
)

// Registry holds the live upstreams of one profile.
type Registry struct {
	schema    string // the name of the profile
	options   Options
	log       zerolog.Logger
	slots     *semaphore.Weighted // bounds how many upstreams start at the same time
	callSlots *semaphore.Weighted // bounds how many per-client sessions open at the same time; calls wait for them
	fills     *semaphore.Weighted // bounds how many start only to fill the cache
	catalog   atomic.Pointer[Catalog]
	changed   changes // lists that clients must be notified of
	clients   clients
	views     views
	users     users
	sessions  clientSessions
	records   records         // messages that somebody watches
	tasks     tasks.Group     // the supervisors
	ctx       context.Context // ends when Run does
	stop      context.CancelFunc

	cacheWarned atomic.Bool // that lists cannot be saved is logged as a warning once

	mu           sync.Mutex             // one change of the catalog at a time
	supervisors  map[string]*supervisor // of the upstreams in the catalog, by name
	replacements map[string]*supervisor // of changed upstreams, until they have started
	isRunning    bool
}

// Options are what a Registry needs besides its profile.
type Options struct {
	Log            zerolog.Logger
	Version        string // of mcpx, for initialize
	MessageBytes   int    // the largest message an upstream may send
	ConnectsAtOnce int
	PingEvery      time.Duration    // of idle network sessions; 0: pingEvery
	Watcher        *child.Watcher   // ends the children if mcpx is killed; may be nil
	Cache          *listcache.Cache // the lists on disk; nil: none
	Accounts       *auth.Accounts   // sign in to upstreams; nil: no OAuth
	// SignIn returns how a person signs in to a server, with these scopes in addition; may
	// be nil.
	SignIn  func(server string, scopes []string) string
	Compile func(t *lists.Tool) // prepares a tool that was listed, in the background; may be nil
	Tracer  *telemetry.Tracer   // records spans of requests; nil: none
}

// New returns a Registry of the profile's upstreams, none of them started.
func New(profile *config.Profile, o Options) *Registry {
	r := &Registry{
		schema:       profile.Name,
		options:      o,
		log:          o.Log,
		slots:        semaphore.NewWeighted(int64(max(o.ConnectsAtOnce, 1))),
		callSlots:    semaphore.NewWeighted(int64(max(o.ConnectsAtOnce, 1))),
		fills:        semaphore.NewWeighted(1),
		changed:      newChanges(),
		clients:      newClients(),
		views:        views{schema: profile.Name},
		sessions:     clientSessions{byKey: map[sessionKey]*clientSession{}},
		supervisors:  map[string]*supervisor{},
		replacements: map[string]*supervisor{},
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	r.catalog.Store(&Catalog{})
	r.Apply(profile)
	return r
}

// Run starts the upstreams and restarts those that fail, until ctx ends. It returns when
// all of them are stopped and no child is left.
func (r *Registry) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, r.stop)()
	r.mu.Lock()
	r.isRunning = true
	for _, s := range r.supervisors {
		r.start(s)
	}
	r.mu.Unlock()
	r.announce(r.ctx)
	r.sessions.closeAll()
	r.tasks.Close()
	return nil
}

// Done is closed when the upstreams stop for good.
func (r *Registry) Done() <-chan struct{} { return r.ctx.Done() }

// Catalog returns the current catalog.
func (r *Registry) Catalog() *Catalog { return r.catalog.Load() }

// Settled waits until the upstream is no longer starting, or until ctx ends, and returns
// it; nil for an unknown name.
func (r *Registry) Settled(ctx context.Context, name string) *Upstream {
	return r.For(nil).Settled(ctx, name)
}

// SettleAll waits until no upstream is in its first start, or until the timeout.
func (r *Registry) SettleAll(ctx context.Context, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, u := range r.Catalog().Upstreams {
		if u.InFirstStart() {
			r.Settled(ctx, u.Name)
		}
	}
}
