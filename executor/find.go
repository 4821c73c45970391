package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/nearest"
	"mcpx/internal/plain"
	"mcpx/internal/upstream"
	"mcpx/registry"
	"mcpx/registry/lists"
	"mcpx/registry/live"
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
	for _, u := range e.upstreams(e.registry.For(c).Catalog()) {
		names = append(names, u.Name)
	}
	return names
}

// upstreams returns the upstreams of a catalog, and the built-in one.
func (e *Executor) upstreams(c *registry.Catalog) []*live.Upstream {
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
	case u == nil && slices.Contains(profile.Disabled(), name) && upstream.CallerOf(c).Rules.HasServer(profile.Name, name):
		return nil, &NotFound{fmt.Sprintf("server %s is disabled in the config; servers: %s", quoted(name), list(e.Servers(c)))}
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
	for _, u := range e.upstreams(e.registry.For(c).Catalog()) {
		if t := toolOf(u, name); t != nil {
			return u.Name, t.Name, true
		}
	}
	return "", "", false
}

// toolOf finds a tool of an upstream by its name, which may begin with the upstream's name.
func toolOf(u *live.Upstream, name string) *lists.Tool {
	if t := u.Tool(name); t != nil {
		return t
	}
	for _, separator := range separators {
		if short, ok := strings.CutPrefix(name, u.Name+separator); ok && u.Tool(short) != nil {
			return u.Tool(short)
		}
	}
	return nil
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
	if t := toolOf(u, c.Tool); t != nil {
		return u, t, nil
	}
	if u.State != live.Ready {
		return nil, nil, u.Unavailable()
	}
	return nil, nil, unknownTool(u, c.Tool)
}

// separators occur in names between the server and the tool.
var separators = []string{"__", ".", "/", ":"}

// splitName splits a tool's name that begins with the server.
func (c *Call) splitName(servers []string) {
	whole := c.Tool
	for _, server := range servers {
		for _, separator := range separators {
			// If two server names match, the longer one wins.
			if name, ok := strings.CutPrefix(whole, server+separator); ok && len(server) > len(c.Server) {
				c.Server, c.Tool = server, name
			}
		}
	}
}

// Limits of the names in an error.
const (
	nameList  = 1500 // bytes in all
	nameBytes = 128  // of one
)

// shown returns a name for an error or a listing: on one line and not too long.
func shown(name string) string { return plain.Cut(plain.Line(name), nameBytes) }

// quoted returns shown in quotes.
func quoted(name string) string { return `"` + shown(name) + `"` }

func unknownServer(name string, servers []string) error {
	if name == "" {
		return &NotFound{"server_name: required; servers: " + list(servers)}
	}
	return &NotFound{fmt.Sprintf("unknown server %s%s: %s", quoted(name), then(didYouMean(name, servers), "servers"), list(servers))}
}

func noTool(u *live.Upstream) error {
	return &NotFound{fmt.Sprintf("tool_name: required; tools of server %s: %s", quoted(u.Name), list(toolNames(u)))}
}

func unknownTool(u *live.Upstream, name string) error {
	if u.IsWithheld(name) {
		return &NotFound{fmt.Sprintf("tool %s of server %s cannot be used: %s", quoted(name), quoted(u.Name), u.Review())}
	}
	return &NotFound{fmt.Sprintf("server %s has no tool %s%s: %s", quoted(u.Name), quoted(name), then(didYouMean(name, toolNames(u)), "its tools"), list(toolNames(u)))}
}

// UnknownPrompt returns the error of a prompt that an upstream does not have.
func UnknownPrompt(u *live.Upstream, name string) error {
	names := make([]string, len(u.Prompts))
	for i, p := range u.Prompts {
		names[i] = p.Key
	}
	return &NotFound{fmt.Sprintf("server %s has no prompt %s%s: %s", quoted(u.Name), quoted(name), then(didYouMean(name, names), "its prompts"), list(names))}
}

func toolNames(u *live.Upstream) []string {
	names := make([]string, len(u.Tools))
	for i, t := range u.Tools {
		names[i] = t.Name
	}
	return names
}

func didYouMean(name string, known []string) string {
	if len(name) > nameBytes {
		return ""
	}
	near := nearest.Words(name, known, 3)
	if len(near) == 0 {
		return ""
	}
	for i, n := range near {
		near[i] = quoted(n)
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// then appends the title of a list to an error: after a question as a new sentence.
func then(question, what string) string {
	if question == "" {
		return "; " + what
	}
	return question + " " + strings.ToUpper(what[:1]) + what[1:]
}

// list returns names on one line, as many as fit.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, name := range names {
		if b.Len() > nameList {
			fmt.Fprintf(&b, ", … and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(shown(name))
	}
	return b.String()
}
