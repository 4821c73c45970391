package registry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/internal/lockfile"
	"mcpx/internal/policy"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/internal/upstream"
)

// View is a registry as one client sees it: without what its caller may not use. Every
// path from a client to the catalog goes through a View, so no path has to check rules.
type View struct {
	registry *Registry
	client   upstream.Client // nil: mcpx itself, which sees everything
}

// For returns the registry as a client sees it. A nil client sees everything.
func (r *Registry) For(c upstream.Client) View { return View{r, c} }

// rules returns what the client may use; nil: everything.
func (v View) rules() *policy.Rules { return upstream.RulesOf(v.client) }

// mayUse reports whether anything of a server exists for a client.
func (r *Registry) mayUse(c upstream.Client, server string) bool {
	return upstream.RulesOf(c).HasServer(r.schema, server)
}

// Catalog returns the part of the current catalog that the client may see, with the
// upstreams of its caller.
func (v View) Catalog() *Catalog {
	whole := v.registry.Catalog()
	key := v.key(whole)
	switch {
	case key == (viewKey{}):
		return whole
	case len(whole.perUser) == 0:
		if last := v.registry.views.last(key, whole); last != nil {
			return last
		}
	}
	return v.registry.views.of(key, whole, v.compose(whole))
}

// viewKey identifies what a client sees. It is zero for a client that sees the catalog as
// it is.
type viewKey struct {
	rules *policy.Rules
	user  string // if the catalog has upstreams with isolation "user"
}

// key returns what the client sees of a catalog.
func (v View) key(whole *Catalog) viewKey {
	key := viewKey{rules: v.rules()}
	hasOwn := false
	for _, u := range whole.perUser {
		own := keyOf(u.config, v.client).client
		hasOwn = hasOwn || own != ""
		key.user += own + "\n"
	}
	if !hasOwn {
		key.user = ""
	}
	return key
}

// compose returns the upstreams that the client may see, before its rules apply.
func (v View) compose(whole *Catalog) []*Upstream {
	rules := v.rules()
	all := make([]*Upstream, 0, len(whole.Upstreams))
	for _, u := range whole.Upstreams {
		if !rules.HasServer(v.registry.schema, u.Name) {
			continue
		}
		if u.config != nil && u.config.Isolation == config.PerUser {
			u = v.current(u.Name)
		}
		all = append(all, u)
	}
	return all
}

// Ready is like Registry.Ready.
func (v View) Ready(ctx context.Context, name string) (*Upstream, error) {
	name = v.known(name)
	ctx, cancel := v.registry.startLimit(ctx, name, time.Time{})
	defer cancel()
	u, err := v.ready(ctx, name)
	return v.see(u), v.explain(name, err)
}

// Listed is like Registry.Listed.
func (v View) Listed(ctx context.Context, name string) (*Upstream, error) {
	name = v.known(name)
	ctx, cancel := v.registry.startLimit(ctx, name, time.Time{})
	defer cancel()
	if u := v.settledSoon(ctx, name); u != nil && u.State == Idle && u.isListed() && v.isOwn(u) {
		return v.see(u), nil
	}
	u, err := v.ready(ctx, name)
	return v.see(u), v.explain(name, err)
}

// Settled is like Registry.Settled.
func (v View) Settled(ctx context.Context, name string) *Upstream {
	return v.see(v.settled(ctx, v.known(name)))
}

// known returns a name that exists for the client, or one that no upstream has.
func (v View) known(name string) string {
	if v.registry.mayUse(v.client, name) {
		return name
	}
	return ""
}

// see returns the part of an upstream that the client may see.
func (v View) see(u *Upstream) *Upstream {
	rules := v.rules()
	if u == nil || rules == nil {
		return u
	}
	return u.restrict(v.registry.schema, rules)
}

// views caches what clients see, so that the lists of a caller are made once for each
// change of the catalog. Its methods may be called concurrently.
type views struct {
	schema string

	mu    sync.Mutex
	byKey map[viewKey]seenCatalog
}

// seenCatalog is what clients see of a catalog.
type seenCatalog struct{ whole, part *Catalog }

// maxViews bounds the catalogs that are cached.
const maxViews = 256

// last returns the cached part of a catalog; nil if there is none.
func (v *views) last(key viewKey, whole *Catalog) *Catalog {
	v.mu.Lock()
	defer v.mu.Unlock()
	if last := v.byKey[key]; last.whole == whole {
		return last.part
	}
	return nil
}

// of returns the catalog with the part of some upstreams that the rules in the key grant.
// Upstreams that have not changed are the same values as before, with everything derived
// from them.
func (v *views) of(key viewKey, whole *Catalog, upstreams []*Upstream) *Catalog {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := v.byKey[key].part
	if last != nil && slices.EqualFunc(last.Upstreams, upstreams, func(seen, u *Upstream) bool { return seen.isOf(u) }) {
		return last
	}
	if v.byKey == nil || len(v.byKey) >= maxViews {
		v.byKey = map[viewKey]seenCatalog{}
	}
	next := &Catalog{byName: map[string]*Upstream{}}
	for _, u := range upstreams {
		seen := u
		if key.rules != nil {
			seen = u.restrict(v.schema, key.rules)
		}
		if last != nil && last.byName[u.Name] != nil && last.byName[u.Name].isOf(u) {
			seen = last.byName[u.Name]
		}
		next.Upstreams = append(next.Upstreams, seen)
		next.byName[u.Name] = seen
	}
	v.byKey[key] = seenCatalog{whole, next}
	return next
}

// isOf reports whether the upstream is a part of another, or the same.
func (u *Upstream) isOf(whole *Upstream) bool { return u == whole || u.whole == whole }

// restrict returns the part of an upstream that the rules grant. Instructions, notes about
// tools that wait for a review, and what it writes to stderr while it works may name any
// tool, so only those see them who see all tools.
func (u *Upstream) restrict(schema string, rules *policy.Rules) *Upstream {
	part := *u
	part.whole = u
	part.Tools, part.tools = nil, map[string]*Tool{}
	for _, t := range u.Tools {
		if rules.HasTool(policy.Tool{Schema: schema, Server: u.Name, Name: t.Name, ReadOnly: t.isReadOnly()}) {
			part.Tools = append(part.Tools, t)
			part.tools[t.Name] = t
		}
	}
	part.ToolsOnly = !rules.HasAllOf(schema, u.Name)
	if part.ToolsOnly {
		part.Prompts, part.Resources, part.Templates, part.Capabilities = nil, nil, nil, nil
	}
	if !rules.HasEveryToolOf(schema, u.Name) {
		part.Instructions, part.instructions, part.instructionsWait, part.news = "", "", false, nil
		part.stderr = nil
		part.waiting = maps.Clone(u.waiting)
		delete(part.waiting, lockfile.Tools)
		shown := slices.Clip(part.Tools)
		part.tokens = sync.OnceValue(func() int { return tokens.CountBytes(toolList(shown)) })
	}
	return &part
}

// isReadOnly reports whether the upstream says that the tool changes nothing.
func (t *Tool) isReadOnly() bool {
	return string(rawjson.Get(rawjson.Get(t.Raw, "annotations"), "readOnlyHint")) == "true"
}
