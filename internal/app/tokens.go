package app

import (
	"context"

	"mcpx/registry/live"
	"mcpx/server"
)

// ToolLists are the tool lists of a profile in a client's context: one of each upstream
// without mcpx, and one with it.
type ToolLists struct {
	Profile   *Profile
	Upstreams []*live.Upstream
	Without   [][]byte // by upstream; nil if it lists nothing
	With      []byte
}

// ToolLists returns the lists of all profiles. It waits until every upstream is ready or
// has failed, or ctx ends.
func (a *App) ToolLists(ctx context.Context) []ToolLists {
	var all []ToolLists
	for _, p := range a.Profiles() {
		lists := ToolLists{Profile: p, With: server.New(p.Profile, p.Registry, p.Executor, server.Options{Version: Version()}).LazyTools(nil)}
		for _, u := range p.Upstreams {
			settled := p.Registry.Settled(ctx, u.Name)
			lists.Upstreams = append(lists.Upstreams, settled)
			lists.Without = append(lists.Without, settled.ToolList())
		}
		all = append(all, lists)
	}
	return all
}
