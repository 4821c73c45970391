package registry

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"mcpx/internal/policy"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

// View is a registry as one client sees it: without what its caller may not use. Every
// path from a client to the catalog goes through a View, so no path has to check rules.
type View struct {
	registry *Registry
	client   Client // nil: mcpx itself, which sees everything
}

// For returns the registry as a client sees it. A nil client sees everything.
func (r *Registry) For(c Client) View { return View{r, c} }

// rules returns what the client may use; nil: everything.
func (v View) rules() *policy.Rules { return rulesOf(v.client) }

func rulesOf(c Client) *policy.Rules {
	if c == nil {
		return nil
	}
	if caller := c.Caller(); caller != nil {
		return caller.Rules
	}
	return nil
}

// mayUse reports whether anything of a server exists for a client.
func (r *Registry) mayUse(c Client, server string) bool {
	return rulesOf(c).HasServer(r.schema, server)
}

// Catalog returns the part of the current catalog that the client may see.
func (v View) Catalog() *Catalog {
	catalog, rules := v.registry.Catalog(), v.rules()
	if rules == nil {
		return catalog
	}
	return v.registry.views.of(catalog, v.registry.schema, rules)
}

// Ready is like Registry.Ready.
func (v View) Ready(ctx context.Context, name string) (*Upstream, error) {
	return v.see(v.registry.Ready(ctx, v.known(name)))
}

// Listed is like Registry.Listed.
func (v View) Listed(ctx context.Context, name string) (*Upstream, error) {
	return v.see(v.registry.Listed(ctx, v.known(name)))
}

// Settled is like Registry.Settled.
func (v View) Settled(ctx context.Context, name string) *Upstream {
	u, _ := v.see(v.registry.Settled(ctx, v.known(name)), nil)
	return u
}

// known returns a name that exists for the client, or one that no upstream has.
func (v View) known(name string) string {
	if v.registry.mayUse(v.client, name) {
		return name
	}
	return ""
}

// see returns the part of an upstream that the client may see.
func (v View) see(u *Upstream, err error) (*Upstream, error) {
	rules := v.rules()
	if u == nil || rules == nil {
		return u, err
	}
	return u.restrict(v.registry.schema, rules), err
}

// views caches restricted catalogs, so that the lists of a caller are made once for each
// change of the catalog. Its methods may be called concurrently.
type views struct {
	mu        sync.Mutex
	byRules   map[*policy.Rules]restricted
	announced map[*policy.Rules]*Catalog // as clients with the rules know it
}

// restricted is the part of a catalog that some rules grant.
type restricted struct{ whole, part *Catalog }

// watch records what a new client sees, so that it is notified of later changes alone.
func (v *views) watch(seen View) {
	rules, now := seen.rules(), seen.Catalog()
	if rules == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.announced[rules] == nil {
		v.setAnnounced(rules, now)
	}
}

// announce records what clients with the rules see from now on, and returns what they saw
// before; nil if that is not known.
func (v *views) announce(rules *policy.Rules, now *Catalog) (before *Catalog) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before = v.announced[rules]
	v.setAnnounced(rules, now)
	return before
}

// setAnnounced sets an entry of announced. The caller holds v.mu.
func (v *views) setAnnounced(rules *policy.Rules, now *Catalog) {
	if v.announced == nil || len(v.announced) >= maxViews {
		v.announced = map[*policy.Rules]*Catalog{}
	}
	v.announced[rules] = now
}

// sameLists reports whether two catalogs have the same lists of a capability. Nothing is
// the same as a nil catalog.
func (c *Catalog) sameLists(other *Catalog, capability string) bool {
	if other == nil {
		return false
	}
	lists := func(c *Catalog) (all []json.RawMessage) {
		for _, u := range c.Upstreams {
			for _, k := range kinds {
				if k.capability == capability {
					all = append(all, u.rawItems(k)...)
				}
			}
		}
		return all
	}
	return slices.EqualFunc(lists(c), lists(other), func(a, b json.RawMessage) bool { return string(a) == string(b) })
}

// rawItems returns the definitions of one kind of list.
func (u *Upstream) rawItems(k kind) (all []json.RawMessage) {
	items := map[string][]Item{"prompts/list": u.Prompts, "resources/list": u.Resources, "resources/templates/list": u.Templates}[k.method]
	for _, item := range items {
		all = append(all, item.Raw)
	}
	if k.method == "tools/list" {
		for _, t := range u.Tools {
			all = append(all, t.Raw)
		}
	}
	return all
}

// maxViews bounds the catalogs that are cached.
const maxViews = 256

// of returns the part of a catalog that the rules grant.
func (v *views) of(whole *Catalog, schema string, rules *policy.Rules) *Catalog {
	v.mu.Lock()
	defer v.mu.Unlock()
	if cached := v.byRules[rules]; cached.whole == whole {
		return cached.part
	}
	if v.byRules == nil || len(v.byRules) >= maxViews {
		v.byRules = map[*policy.Rules]restricted{}
	}
	previous := v.byRules[rules].part
	part := whole.restrict(schema, rules, previous)
	v.byRules[rules] = restricted{whole, part}
	return part
}

// restrict returns the part of a catalog that the rules grant. Upstreams that have not
// changed since the previous part are the same values, with everything derived from them.
func (c *Catalog) restrict(schema string, rules *policy.Rules, previous *Catalog) *Catalog {
	part := &Catalog{byName: map[string]*Upstream{}}
	for _, u := range c.Upstreams {
		if !rules.HasServer(schema, u.Name) {
			continue
		}
		seen := (*Upstream)(nil)
		if previous != nil {
			seen = previous.byName[u.Name]
		}
		if seen == nil || seen.whole != u {
			seen = u.restrict(schema, rules)
		}
		part.Upstreams = append(part.Upstreams, seen)
		part.byName[u.Name] = seen
	}
	return part
}

// restrict returns the part of an upstream that the rules grant. Instructions may name
// any tool, so only those see them who see all tools.
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
	if part.ToolsOnly || len(part.Tools) != len(u.Tools) {
		part.Instructions = ""
		shown := slices.Clip(part.Tools)
		part.tokens = sync.OnceValue(func() int { return tokens.CountBytes(toolList(shown)) })
	}
	return &part
}

// isReadOnly reports whether the upstream says that the tool changes nothing.
func (t *Tool) isReadOnly() bool {
	return string(rawjson.Get(rawjson.Get(t.Raw, "annotations"), "readOnlyHint")) == "true"
}
