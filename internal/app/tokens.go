package app

import (
	"context"

	"mcpx/registry/live"
	"mcpx/server"
)

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
		lists := ToolLists{Profile: p, With: server.New(p.Profile, p.Registry, p.Executor, server.Options{Version: Version()}).LazyTools(nil)}
		for _, u := range p.Upstreams {
			lists.Upstreams = append(lists.Upstreams, p.Registry.Settled(ctx, u.Name))
		}
		all = append(all, lists)
	}
	return all
}
