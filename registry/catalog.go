package registry

import (
	"slices"
	"sync"

	"mcpx/config"
	"mcpx/registry/live"
)

// Catalog is the state of a profile's upstreams at one moment, with their lists. It is
// immutable: a new catalog replaces it.
type Catalog struct {
	Upstreams []*live.Upstream // in config order
	byName    map[string]*live.Upstream
	perUser   []*live.Upstream // with isolation "user"
	derived   sync.Map         // see Derived
	views     live.Kept[viewKey, *Catalog]
}

// newCatalog returns a catalog of these upstreams.
func newCatalog(upstreams []*live.Upstream) *Catalog {
	c := &Catalog{Upstreams: upstreams, byName: make(map[string]*live.Upstream, len(upstreams))}
	for _, u := range upstreams {
		c.byName[u.Name] = u
		if u.Config != nil && u.Config.Isolation == config.PerUser {
			c.perUser = append(c.perUser, u)
		}
	}
	return c
}

// Derived returns a value that a user of the registry derives from the catalog, by its key.
// It lives as long as the catalog, and may be made twice.
func (c *Catalog) Derived(key any, from func(c *Catalog) any) any {
	if value, ok := c.derived.Load(key); ok {
		return value
	}
	value, _ := c.derived.LoadOrStore(key, from(c))
	return value
}

// Upstream finds an upstream by its exact name, nil if there is none.
func (c *Catalog) Upstream(name string) *live.Upstream { return c.byName[name] }

// with returns the catalog with one upstream replaced.
func (c *Catalog) with(u *live.Upstream) *Catalog {
	upstreams := slices.Clone(c.Upstreams)
	for i, old := range upstreams {
		if old.Name == u.Name {
			upstreams[i] = u
		}
	}
	return newCatalog(upstreams)
}
