package executor

import (
	"context"
	"fmt"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// Inspect describes a server's tools, or one tool in full, or those that a glob
// or a comma list names. It waits while the server starts.
func (e *Executor) Inspect(ctx context.Context, server, tool string) (string, error) {
	u, err := e.Upstream(ctx, server)
	if err != nil {
		return "", err
	}
	if tool == "" {
		return e.listings.of(u, e.config.Limits.InspectTokens), nil
	}
	if t := u.Tool(tool); t != nil {
		return string(describe(t)), nil
	}
	for _, joint := range joints {
		if name, ok := strings.CutPrefix(tool, server+joint); ok && u.Tool(name) != nil {
			return string(describe(u.Tool(name))), nil
		}
	}
	found := match(u, tool)
	switch {
	case len(found) == 0:
		return "", unknownTool(u, tool)
	case strings.ContainsAny(tool, "*?["):
		return listing(u, found, e.config.Limits.InspectTokens), nil
	}
	text := describeAll(u, found, e.config.Limits.InspectTokens)
	for _, name := range strings.Split(tool, ",") {
		if name = strings.TrimSpace(name); name != "" && u.Tool(name) == nil {
			text += fmt.Sprintf("\nno tool %s%s", quoted(name), didYouMean(name, toolNames(u)))
		}
	}
	return text, nil
}

// Tools are the tools that a name, a glob or a comma list means, as Inspect
// takes them; without one, all. One is said of a single tool, by its name.
func (e *Executor) Tools(ctx context.Context, server, tool string) (tools []*registry.Tool, one bool, err error) {
	u, err := e.Upstream(ctx, server)
	if err != nil {
		return nil, false, err
	}
	if tool == "" {
		return u.Tools, false, nil
	}
	if t, err := e.Tool(ctx, server, tool); err == nil {
		return []*registry.Tool{t}, true, nil
	}
	for _, name := range strings.Split(tool, ",") {
		if name = strings.TrimSpace(name); name != "" && len(match(u, name)) == 0 {
			return nil, false, unknownTool(u, name)
		}
	}
	return match(u, tool), false, nil
}

// describe is a tool's definition as the upstream sent it, minified, without
// what is for hosts and not for models.
func describe(t *registry.Tool) []byte {
	b := []byte("{")
	for key, value := range rawjson.Members(t.Raw) {
		if key != "icons" && key != "_meta" {
			b = rawjson.AppendMember(b, key, rawjson.Compact(value))
		}
	}
	return append(b, '}')
}

// describeAll shows several tools in full, one a line, or as a listing where
// that would go over the budget.
func describeAll(u *registry.Upstream, found []*registry.Tool, budget int) string {
	full, fits := lines(found, func(t *registry.Tool) string { return string(describe(t)) }, budget)
	if !fits {
		return listing(u, found, budget)
	}
	return full
}
