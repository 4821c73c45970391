package app

import (
	"context"

	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/server"
)

// ToolLists are what a client's context holds of a profile: the list of each
// upstream without mcpx, and the one list with it.
type ToolLists struct {
	Upstreams []*registry.Upstream
	Without   [][]byte // by upstream; nil if it lists nothing
	With      []byte
}

// ToolLists waits until every upstream is ready or has failed.
func (p *Profile) ToolLists(ctx context.Context) ToolLists {
	lists := ToolLists{With: server.New(p.Profile, p.Registry, p.Executor, server.Options{Version: Version()}).TwoTools()}
	for _, u := range p.Upstreams {
		settled := p.Registry.Settled(ctx, u.Name)
		lists.Upstreams = append(lists.Upstreams, settled)
		lists.Without = append(lists.Without, toolList(settled))
	}
	return lists
}

// toolList is the answer of an upstream to tools/list.
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
