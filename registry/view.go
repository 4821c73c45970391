package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcpx/internal/policy"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// View is a registry as one client sees it: without what its caller may not use. Every
// path from a client to the catalog goes through a View, so no path has to check rules.
type View struct {
	registry *Registry
	client   upstream.Client // nil: mcpx itself, which sees everything

	isForCalls bool // see forCalls
}

// For returns the registry as a client sees it. A nil client sees everything.
func (r *Registry) For(c upstream.Client) View { return View{registry: r, client: c} }

// forCalls returns the view for a client's requests: with isolation "client", they use its own
// session.
func (r *Registry) forCalls(c upstream.Client) View {
	return View{registry: r, client: c, isForCalls: true}
}

// rules returns what the client may use; nil: everything.
func (v View) rules() policy.Rules { return upstream.CallerOf(v.client).Rules }

// mayUse reports whether anything of a server exists for a client.
func (r *Registry) mayUse(c upstream.Client, server string) bool {
	return upstream.CallerOf(c).HasServer(r.profile, server)
}

// Catalog returns the part of the current catalog that the client may see, with the
// upstreams of its caller.
func (v View) Catalog() *Catalog {
	whole := v.registry.Catalog()
	key := v.key(whole)
	if key == (viewKey{}) {
		return whole
	}
	seen := whole.views.Load(key)
	if seen != nil && len(whole.perOwner) == 0 {
		return seen
	}
	upstreams := v.compose(whole) // upstreams of owners change while the catalog stays the same
	if seen == nil || !slices.Equal(seen.Upstreams, upstreams) {
		seen = newCatalog(upstreams)
		whole.views.Store(key, seen)
	}
	return seen
}

// viewKey identifies what a client sees. It is zero for a client that sees the catalog as
// it is.
type viewKey struct {
	rules policy.Rules
	owner string // if the catalog has upstreams with lists per owner
}

// key returns what the client sees of a catalog.
func (v View) key(whole *Catalog) viewKey {
	key := viewKey{rules: v.rules()}
	hasOwn := false
	for _, u := range whole.perOwner {
		own := keyOf(u.Config, v.client).owner
		hasOwn = hasOwn || own != ""
		key.owner += own + "\n"
	}
	if !hasOwn {
		key.owner = ""
	}
	return key
}

// compose returns the upstreams that the client may see, or the parts of them.
func (v View) compose(whole *Catalog) []*live.Upstream {
	caller := upstream.CallerOf(v.client)
	all := make([]*live.Upstream, 0, len(whole.Upstreams))
	for _, u := range whole.Upstreams {
		if !caller.HasServer(v.registry.profile, u.Name) {
			continue
		}
		if u.ListsPerOwner() {
			u = v.current(u.Name)
		}
		all = append(all, v.see(u))
	}
	return all
}

// Ready returns the upstream once it has a session. It waits while the upstream
// starts, for its start-up limit at most. If the upstream is idle or waits for its next
// start, it is started at once, unless its start failed less than a second ago and nobody
// has signed in since. An *live.Unavailable says why there is no session.
func (v View) Ready(ctx context.Context, name string) (*live.Upstream, error) {
	name = v.known(name)
	ctx, cancel := v.registry.startLimit(ctx, name, time.Time{})
	defer cancel()
	u, err := v.ready(ctx, name)
	return v.see(u), v.explain(name, err)
}

// Listed is like Ready, but does not start an idle upstream whose lists are known.
func (v View) Listed(ctx context.Context, name string) (*live.Upstream, error) {
	name = v.known(name)
	ctx, cancel := v.registry.startLimit(ctx, name, time.Time{})
	defer cancel()
	if u := v.settledSoon(ctx, name); u != nil && u.State == live.Idle && u.IsListed() && v.serves(u) {
		return v.see(u), nil
	}
	u, err := v.ready(ctx, name)
	return v.see(u), v.explain(name, err)
}

// AwaitsLists reports whether a request must wait for newer lists of an upstream that the
// client sees. That is so if the upstream has to start first, if it has announced other lists,
// or if the views are strict and another upstream, of this owner, serves the client.
func (v View) AwaitsLists(u *live.Upstream) bool {
	return u.NeedsStart() || u.AwaitsList() || u.IsStrict() && !v.serves(u)
}

// Relisted returns the upstream once it is ready, and the lists that it has announced so far
// are read.
func (v View) Relisted(ctx context.Context, name string) (*live.Upstream, error) {
	name = v.known(name)
	if u := v.current(name); u == nil || !u.AwaitsList() || !v.serves(u) {
		if u, err := v.Ready(ctx, name); err != nil || !u.AwaitsList() {
			return u, err
		}
	}
	u := v.current(name)
	if u == nil || !u.AwaitsList() {
		return v.Ready(ctx, name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, u.Config.StartupTimeout, &live.Unavailable{Server: name, Reason: "it has changed its lists, and they could not be read; try again later"})
	defer cancel()
	announced := u.Supervisor.Announced()
	for u.AwaitsList() && !u.HasRead(announced) {
		if err := u.Superseded(ctx); err != nil {
			return nil, err
		}
		next := v.current(name)
		if next == nil || next.Supervisor != u.Supervisor {
			break
		}
		u = next
	}
	return v.Ready(ctx, name)
}

// Settled waits until the upstream is no longer starting, or until ctx ends, and returns
// it; nil for an unknown name.
func (v View) Settled(ctx context.Context, name string) *live.Upstream {
	return v.see(v.settled(ctx, v.known(name)))
}

// settled waits until the upstream is no longer starting, or until ctx ends.
func (v View) settled(ctx context.Context, name string) *live.Upstream {
	for {
		u := v.current(name)
		if u == nil || u.State != live.Starting {
			return u
		}
		if u.Superseded(ctx) != nil {
			return u
		}
	}
}

// settledSoon is settled for a request. An upstream that is queued to start does not wait
// for its turn.
func (v View) settledSoon(ctx context.Context, name string) *live.Upstream {
	if u := v.current(name); u != nil && u.State == live.Starting {
		u.Supervisor.Hurry()
	}
	return v.settled(ctx, name)
}

// errStillStarting is the cause when startLimit is reached.
var errStillStarting = errors.New("still starting")

// startLimit bounds how long a call waits for an upstream to start: for a slot, for the
// start itself, and for the end of the previous process.
func (r *Registry) startLimit(ctx context.Context, name string, begun time.Time) (context.Context, context.CancelFunc) {
	u := r.Catalog().Upstream(name)
	if u == nil {
		return context.WithCancel(ctx)
	}
	if begun.IsZero() {
		begun = time.Now()
	}
	return context.WithDeadlineCause(ctx, begun.Add(u.Config.StartupTimeout), errStillStarting)
}

// explain turns errStillStarting into an error with the stderr so far.
func (v View) explain(name string, err error) error {
	u := v.current(name)
	if u == nil || !errors.Is(err, errStillStarting) {
		return err
	}
	return &live.Unavailable{Server: name, Reason: fmt.Sprintf(`still starting after %s (its "startup_timeout"); try again later`, u.Config.StartupTimeout), Stderr: u.Supervisor.Stderr()}
}

// ready returns the upstream once it has a session, within the limit of ctx.
func (v View) ready(ctx context.Context, name string) (*live.Upstream, error) {
	for {
		if err := v.ensureOwn(ctx, name); err != nil {
			return nil, err
		}
		u := v.settledSoon(ctx, name)
		switch {
		case u == nil:
			return nil, &live.Unavailable{Server: name, Reason: "it is not in the config"}
		case !v.serves(u): // its own upstream has just ended
			continue
		case u.State == live.Ready:
			return u, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !u.MayStart() || u.State != live.Idle && time.Since(u.FailedAt) < retryGrace && !u.HasNewSignIn(ctx):
			return nil, u.Unavailable()
		}
		u.Supervisor.Start()
		if err := u.Superseded(ctx); err != nil {
			return nil, err
		}
	}
}

// retryGrace is how long after a failed start calls do not start the upstream again.
const retryGrace = time.Second

// known returns a name that exists for the client, or one that no upstream has.
func (v View) known(name string) string {
	if v.registry.mayUse(v.client, name) {
		return name
	}
	return ""
}

// see returns the part of an upstream that the client may see.
func (v View) see(u *live.Upstream) *live.Upstream {
	rules := v.rules()
	if u == nil || rules == nil {
		return u
	}
	return u.Restrict(v.registry.profile, rules)
}
