package executor

import (
	"context"
	"strings"

	"mcpx/executor/listing"
	"mcpx/executor/results"
	"mcpx/registry/lists"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Inspect returns a listing of a server's tools, the definition of one tool, or those of
// the tools that match a glob or a comma-separated list, with a line for each name in
// the list that matches no tool. It waits while the server starts. The client may be nil.
func (e *Executor) Inspect(ctx context.Context, c upstream.Client, server, tool string) (string, error) {
	text, absent, err := e.Describe(ctx, c, server, tool)
	return strings.Join(append([]string{text}, absent...), "\n"), err
}

// Describe is Inspect, but returns the lines about absent tools separately.
func (e *Executor) Describe(ctx context.Context, c upstream.Client, server, tool string) (text string, absent []string, err error) {
	m, err := e.Match(ctx, c, server, tool)
	catalog, budget := e.Catalog(c), e.InspectTokens()
	switch {
	case err != nil:
		return "", nil, err
	case tool == "" && m.Upstream == e.builtin.upstream:
		return listing.WholeBuiltin(m.Upstream, catalog.Upstreams, budget), nil, nil
	case tool == "":
		return listing.WithNews(m.Upstream, listing.Whole(catalog, m.Upstream, budget), budget), nil, nil
	}
	shape := func(t *lists.Tool) string {
		return e.results.Shape(ownerOf(c), results.Tool{Server: m.Upstream.Name, Name: t.Name})
	}
	return m.Text(shape, budget), m.Absent, nil
}

// Match finds tools as Inspect does, all tools if tool is empty.
func (e *Executor) Match(ctx context.Context, c upstream.Client, server, tool string) (listing.Match, error) {
	u, err := e.Upstream(ctx, c, server)
	if err != nil {
		return listing.Match{}, err
	}
	m := listing.Find(u, tool)
	if tool == "" {
		return m, nil
	}
	if len(m.Tools) == 0 && u.NeedsStart() { // the tool may be new
		if u, err = e.registry.For(c).Ready(ctx, u.Name); err != nil {
			return listing.Match{}, err
		}
		m = listing.Find(u, tool)
	}
	if len(m.Tools) == 0 {
		return listing.Match{}, unknownTool(u, tool)
	}
	return m, nil
}

// Exposure returns the Exposure of what the client may see of the current catalog, with the
// names that the profile wants.
func (e *Executor) Exposure(c upstream.Client) *listing.Exposure {
	style := listing.OwnNames
	if e.settings.Load().profile.Prefix {
		style = listing.PrefixedNames
	}
	return listing.ExposureOf(e.Catalog(c), e.builtin.flat, style)
}

// Reading returns what the agent of a client reads about a tool. It never waits.
func (e *Executor) Reading(c upstream.Client, u *live.Upstream, t *lists.Tool) listing.Reading {
	return listing.ReadingOf(t, listing.Whole(e.Catalog(c), u, e.InspectTokens()))
}
