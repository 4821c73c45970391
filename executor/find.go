package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mcpx/executor/listing"
	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/registry/lists"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// NotFound is returned for a server or a tool that does not exist.
type NotFound struct {
	text string
}

func (e *NotFound) Error() string { return e.text }

// Servers returns the names of the upstreams that a client sees, in config order, and the
// built-in one.
func (e *Executor) Servers(c upstream.Client) []string {
	var names []string
	for _, u := range e.Upstreams(e.registry.For(c).Catalog()) {
		names = append(names, u.Name)
	}
	return names
}

// Catalog returns what a client sees of the current catalog.
func (e *Executor) Catalog(c upstream.Client) *registry.Catalog { return e.registry.For(c).Catalog() }

// Upstreams returns the upstreams of a catalog, and the built-in one.
func (e *Executor) Upstreams(c *registry.Catalog) []*live.Upstream {
	return append(slices.Clone(c.Upstreams), e.builtin.upstream)
}

// Upstream finds an upstream by its name, also the built-in one, as the client sees it. If
// none of its tools is known, it waits until they are listed. A nil client sees everything,
// here and elsewhere.
func (e *Executor) Upstream(ctx context.Context, c upstream.Client, name string) (*live.Upstream, error) {
	if name == Builtin {
		return e.builtin.upstream, nil
	}
	seen := e.registry.For(c)
	u, profile := seen.Catalog().Upstream(name), e.settings.Load().profile
	switch {
	case u == nil && slices.Contains(profile.Disabled(), name) && upstream.CallerOf(c).HasServer(profile.Name, name):
		return nil, &NotFound{fmt.Sprintf("server %s is disabled in the config; servers: %s", listing.Quoted(name), listing.Names(e.Servers(c)))}
	case u == nil:
		return nil, unknownServer(name, e.Servers(c))
	case len(u.Tools) == 0:
		return seen.Listed(ctx, name)
	}
	return u, nil
}

// Tool finds a tool the way a call does.
func (e *Executor) Tool(ctx context.Context, c upstream.Client, server, tool string) (*lists.Tool, error) {
	_, t, err := e.find(ctx, &Call{Client: c, Server: server, Tool: tool})
	return t, err
}

// Locate finds the server that has a tool of that name. The name may begin with the
// server's name.
func (e *Executor) Locate(c upstream.Client, name string) (server, tool string, ok bool) {
	for _, u := range e.Upstreams(e.registry.For(c).Catalog()) {
		if t := listing.Tool(u, name); t != nil {
			return u.Name, t.Name, true
		}
	}
	return "", "", false
}

// findTool is find, or findNow if the call may not wait.
func (e *Executor) findTool(ctx context.Context, c *Call) (*live.Upstream, *lists.Tool, error) {
	if c.mayWait {
		return e.find(ctx, c)
	}
	return e.findNow(c)
}

// find returns the upstream and the tool of a call. It repairs common mistakes in the
// names.
func (e *Executor) find(ctx context.Context, c *Call) (*live.Upstream, *lists.Tool, error) {
	if c.isFlat {
		return e.findFlat(ctx, c)
	}
	if c.Server == "" {
		c.splitName(e.Servers(c.Client))
	}
	u, err := e.Upstream(ctx, c.Client, c.Server)
	if seen := e.registry.For(c.Client); err == nil && seen.AwaitsLists(u) {
		u, err = seen.Relisted(ctx, u.Name)
	}
	if err != nil {
		return nil, nil, err
	}
	if c.Tool == "" {
		return nil, nil, noTool(u)
	}
	if t := listing.Tool(u, c.Tool); t != nil {
		return u, t, nil
	}
	if u.State != live.Ready {
		return nil, nil, u.Unavailable()
	}
	return nil, nil, unknownTool(u, c.Tool)
}

// findNow is find for a tool with that exact name of a server that is ready. For any other, it
// returns ErrMustWait.
func (e *Executor) findNow(c *Call) (*live.Upstream, *lists.Tool, error) {
	server, tool := c.Server, c.Tool
	if c.isFlat {
		name, _ := rawjson.View(c.FlatName)
		found := e.Exposure(c.Client).Tool(name)
		if found == nil {
			return nil, nil, ErrMustWait
		}
		server, tool = found.Upstream.Name, found.Key
	}
	seen := e.registry.For(c.Client)
	u := seen.Catalog().Upstream(server)
	if u == nil || u.State != live.Ready || seen.AwaitsLists(u) {
		return nil, nil, ErrMustWait
	}
	if t := u.Tool(tool); t != nil {
		return u, t, nil
	}
	return nil, nil, ErrMustWait
}

// splitName splits a tool's name that begins with the server.
func (c *Call) splitName(servers []string) {
	whole := c.Tool
	for _, server := range servers {
		for _, separator := range listing.Separators {
			// If two server names match, the longer one wins.
			if name, ok := strings.CutPrefix(whole, server+separator); ok && len(server) > len(c.Server) {
				c.Server, c.Tool = server, name
			}
		}
	}
}

func unknownServer(name string, servers []string) error {
	if name == "" {
		return &NotFound{"server_name: required; servers: " + listing.Names(servers)}
	}
	return &NotFound{fmt.Sprintf("unknown server %s%s: %s", listing.Quoted(name), then(listing.DidYouMean(name, servers), "servers"), listing.Names(servers))}
}

func noTool(u *live.Upstream) error {
	return &NotFound{fmt.Sprintf("tool_name: required; tools of server %s: %s", listing.Quoted(u.Name), listing.Names(listing.ToolNames(u)))}
}

func unknownTool(u *live.Upstream, name string) error {
	if why := u.WhyHidden(lists.OfTools, name); why != "" {
		return &NotFound{fmt.Sprintf("tool %s of server %s cannot be used: %s", listing.Quoted(name), listing.Quoted(u.Name), why)}
	}
	return &NotFound{fmt.Sprintf("server %s has no tool %s%s: %s", listing.Quoted(u.Name), listing.Quoted(name), then(listing.DidYouMean(name, listing.ToolNames(u)), "its tools"), listing.Names(listing.ToolNames(u)))}
}

// UnknownPrompt returns the error of a prompt that an upstream does not have.
func UnknownPrompt(u *live.Upstream, name string) error {
	names := make([]string, len(u.Prompts))
	for i, p := range u.Prompts {
		names[i] = p.Key
	}
	return &NotFound{fmt.Sprintf("server %s has no prompt %s%s: %s", listing.Quoted(u.Name), listing.Quoted(name), then(listing.DidYouMean(name, names), "its prompts"), listing.Names(names))}
}

// then appends the title of a list to an error: after a question as a new sentence.
func then(question, what string) string {
	if question == "" {
		return "; " + what
	}
	return question + " " + strings.ToUpper(what[:1]) + what[1:]
}
