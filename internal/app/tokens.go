package app

import (
	"context"

	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/server"
)

// ToolLists are the tool lists of a profile in a client's context: one of each upstream
// without mcpx, and one with it.
type ToolLists struct {
	Profile   *Profile
	Upstreams []*registry.Upstream
	Without   [][]byte // by upstream; nil if it lists nothing
	With      []byte
}

// ToolLists returns the lists of all profiles. It waits until every upstream is ready or
// has failed, or ctx ends.
func (a *App) ToolLists(ctx context.Context) []ToolLists {
	var all []ToolLists
	for _, p := range a.Profiles {
		lists := ToolLists{Profile: p, With: server.New(p.Profile, p.Registry, p.Executor, server.Options{Version: Version()}).LazyTools()}
		for _, u := range p.Upstreams {
			settled := p.Registry.Settled(ctx, u.Name)
			lists.Upstreams = append(lists.Upstreams, settled)
			lists.Without = append(lists.Without, toolList(settled))
		}
		all = append(all, lists)
	}
	return all
}

// toolList returns the response of an upstream to tools/list.
func toolList(u *registry.Upstream) []byte {
	if len(u.Tools) == 0 {
		return nil
	}
	list := []byte(`{"tools":[`)
	for i, t := range u.Tools {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, rawjson.Compact(t.Raw)...)
	}
	return append(list, "]}"...)
}
