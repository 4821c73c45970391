// Package registry keeps the upstreams of a profile alive: it starts them,
// holds one long-lived session to each, caches what they offer, and starts
// again what dies.
package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"mcpx/config"
)

// Registry holds the live upstreams of one profile.
type Registry struct {
	log         zerolog.Logger
	supervisors map[string]*supervisor
	catalog     atomic.Pointer[Catalog]
	publishing  sync.Mutex // one new catalog at a time
	changed     changes    // lists that clients have to hear of
	clients     clients
	isolated    isolated
	ctx         context.Context // of everything that runs
	stop        context.CancelFunc
}

// Options are what a Registry needs besides its profile.
type Options struct {
	Log            zerolog.Logger
	Version        string // of mcpx, told to upstreams
	MessageBytes   int    // the largest message an upstream may send
	ConnectsAtOnce int
	PingEvery      time.Duration // of idle sessions over a network; 0: the usual
	Watcher        *Watcher      // ends the children if mcpx is killed; nil: nobody does

	// Of the one upstream that is dialled.
	intake *intake
	stderr *atomic.Pointer[stderrTail] // is set to that of the child; nil: nobody wants to see it
}

// New returns a Registry of the profile's upstreams, none of them started.
func New(profile *config.Profile, o Options) *Registry {
	r := &Registry{
		log:         o.Log,
		supervisors: map[string]*supervisor{},
		changed:     newChanges(),
		clients:     clients{attached: map[string]Client{}, listeners: map[string]Client{}, levels: map[string]string{}, subscribed: map[string]map[string]*subscription{}, subscriptions: map[string]int{}},
		isolated:    isolated{sessions: map[owner]*private{}},
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	slots := semaphore.NewWeighted(int64(max(o.ConnectsAtOnce, 1)))
	catalog := &Catalog{byName: map[string]*Upstream{}}
	for i := range profile.Upstreams {
		c := &profile.Upstreams[i]
		o.intake = newIntake(o.MessageBytes)
		r.supervisors[c.Name] = &supervisor{
			config:   c,
			options:  o,
			log:      o.Log.With().Str("server", c.Name).Logger(),
			slots:    slots,
			registry: r,
			wake:     make(chan struct{}, 1),
			refresh:  newChanges(),
		}
		u := &Upstream{Name: c.Name, Description: c.Description, State: Starting, config: c, changed: make(chan struct{})}
		catalog.Upstreams = append(catalog.Upstreams, u)
		catalog.byName[c.Name] = u
	}
	r.catalog.Store(catalog)
	return r
}

// Run starts the upstreams and keeps them alive until ctx ends; it returns when
// every one of them is stopped and no child is left.
func (r *Registry) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, r.stop)()
	var wg sync.WaitGroup
	for _, s := range r.supervisors {
		wg.Go(func() { s.run(r.ctx) })
	}
	wg.Go(func() { r.announce(r.ctx) })
	wg.Go(func() {
		<-r.ctx.Done()
		r.isolated.closeAll()
	})
	wg.Wait()
	return nil
}

// Catalog is what is known now.
func (r *Registry) Catalog() *Catalog { return r.catalog.Load() }

// Settled returns the upstream once it is no longer starting: with what it
// offers, or with the reason why it offers nothing. It returns nil for an
// unknown name, and what is known so far when ctx ends.
func (r *Registry) Settled(ctx context.Context, name string) *Upstream {
	for {
		u := r.Catalog().Upstream(name)
		if u == nil || u.State != Starting {
			return u
		}
		if u.superseded(ctx) != nil {
			return u
		}
	}
}

// Call sends a request to an upstream over its session, once it is Ready. Its
// errors are those of Ready and of Session.Call. What was once sent is never
// sent again.
func (r *Registry) Call(ctx context.Context, name string, request Request) ([]byte, error) {
	starting, cancel := r.startLimit(ctx, name, request.Begun)
	defer cancel()
	for {
		u, session, release, err := r.session(starting, name, request.Client)
		if err != nil {
			return nil, r.explain(name, err)
		}
		request.Timeout, request.MaxTimeout = u.config.Timeout, u.config.MaxTimeout
		result, err := session.Call(ctx, request)
		release()
		if !errors.Is(err, errOver) {
			return result, err
		}
		var ended <-chan struct{} = u.changed // its end is not published yet
		if session != u.session {
			ended = session.ctx.Done()
		}
		select {
		case <-ended:
		case <-starting.Done():
			return nil, r.explain(name, context.Cause(starting))
		}
	}
}

// session returns the session for a call of a client, in use until release, and the
// upstream it belongs to. A client's own session does not need the shared one, once
// that has listed what the upstream offers.
func (r *Registry) session(ctx context.Context, name string, c Client) (u *Upstream, s *Session, release func(), err error) {
	u = r.Catalog().Upstream(name)
	isOwn := u != nil && u.config.Isolation == config.PerClient && c != nil
	if !isOwn || !u.isListed() {
		if u, err = r.ready(ctx, name); err != nil {
			return nil, nil, nil, err
		}
	}
	if !isOwn {
		return u, u.session, func() {}, nil
	}
	s, release, err = r.private(ctx, r.supervisors[name], c)
	return u, s, release, err
}

// errStillStarting ends the wait for an upstream to start.
var errStillStarting = errors.New("still starting")

// startLimit bounds how long a call waits for an upstream to start, whatever it
// waits for: a place among the starts, the start itself, or the end of the process
// before it.
func (r *Registry) startLimit(ctx context.Context, name string, begun time.Time) (context.Context, context.CancelFunc) {
	s := r.supervisors[name]
	if s == nil {
		return context.WithCancel(ctx)
	}
	if begun.IsZero() {
		begun = time.Now()
	}
	return context.WithDeadlineCause(ctx, begun.Add(s.config.StartupTimeout), errStillStarting)
}

// explain turns errStillStarting into an error with what is known so far.
func (r *Registry) explain(name string, err error) error {
	if !errors.Is(err, errStillStarting) {
		return err
	}
	s := r.supervisors[name]
	e := &Unavailable{Server: name, Reason: fmt.Sprintf(`still starting after %s (its "startup_timeout"); try again later`, s.config.StartupTimeout)}
	if tail := s.stderr.Load(); tail != nil {
		e.Stderr = tail.lines()
	}
	return e
}

// Start is Call for an upstream that is ready, and waits for nothing: done is told
// what Call would return, by the goroutine that reads the upstream's messages,
// and must not wait either. cancel ends the call as the end of a context would.
// ok is false, and nothing is sent, where Call might have to wait first.
func (r *Registry) Start(name string, request Request, done Done) (cancel func(cause error), ok bool) {
	u := r.Catalog().Upstream(name)
	if u == nil || u.State != Ready || u.config.Transport != config.TransportStdio || u.config.Isolation == config.PerClient || u.session.modern != nil {
		return nil, false
	}
	request.Timeout, request.MaxTimeout = u.config.Timeout, u.config.MaxTimeout
	c, err := u.session.begin(request, done)
	if err != nil {
		return nil, false
	}
	return func(cause error) { u.session.abandon(c, cause) }, true
}

// Ready returns the upstream once it has a session. It waits while the upstream
// starts, for its start-up limit at most, and starts at once one that waits for
// that, if its last failure is more than a second old. An *Unavailable says why
// there is no session.
func (r *Registry) Ready(ctx context.Context, name string) (*Upstream, error) {
	ctx, cancel := r.startLimit(ctx, name, time.Time{})
	defer cancel()
	u, err := r.ready(ctx, name)
	return u, r.explain(name, err)
}

// ready is Ready within the limit of ctx.
func (r *Registry) ready(ctx context.Context, name string) (*Upstream, error) {
	for {
		u := r.Settled(ctx, name)
		switch {
		case u == nil:
			return nil, &Unavailable{Server: name, Reason: "no such server"}
		case u.State == Ready:
			return u, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case u.State != Waiting || time.Since(u.FailedAt) < retryGrace:
			return nil, u.Unavailable()
		}
		select {
		case r.supervisors[name].wake <- struct{}{}:
		default:
		}
		if err := u.superseded(ctx); err != nil {
			return nil, err
		}
	}
}

// retryGrace keeps calls in a row from starting a broken upstream over and over.
const retryGrace = time.Second

// publish puts a new state of one upstream into the catalog and tells those who
// wait for it.
func (r *Registry) publish(name string, change func(u *Upstream)) {
	r.publishing.Lock()
	defer r.publishing.Unlock()
	catalog := r.Catalog()
	old := catalog.Upstream(name)
	next := *old
	next.changed = make(chan struct{})
	change(&next)
	r.catalog.Store(catalog.with(&next))
	close(old.changed)
}
