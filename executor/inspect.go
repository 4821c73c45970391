package executor

import (
	"context"
	"fmt"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// Inspect describes a server's tools, or one tool in full, or those that a glob
// or a comma list names, and says which of a list are absent. It waits while the
// server starts.
func (e *Executor) Inspect(ctx context.Context, server, tool string) (string, error) {
	text, absent, err := e.Describe(ctx, server, tool)
	return strings.Join(append([]string{text}, absent...), "\n"), err
}

// Describe is Inspect with what is said of absent tools apart, a line each.
func (e *Executor) Describe(ctx context.Context, server, tool string) (text string, absent []string, err error) {
	u, err := e.Upstream(ctx, server)
	if err != nil {
		return "", nil, err
	}
	text, err = e.describe(u, tool)
	return text, Absent(u, tool), err
}

// Absent says of each part of a comma list that means no tool of u that there is
// none, and what may have been meant.
func Absent(u *registry.Upstream, tool string) (lines []string) {
	if !strings.Contains(tool, ",") || u.Tool(tool) != nil || len(match(u, tool)) == 0 { // of the last speaks the error
		return nil
	}
	for _, name := range strings.Split(tool, ",") {
		if name = strings.TrimSpace(name); name != "" && len(match(u, name)) == 0 {
			lines = append(lines, fmt.Sprintf("no tool %s%s", quoted(name), didYouMean(name, toolNames(u))))
		}
	}
	return lines
}

func (e *Executor) describe(u *registry.Upstream, tool string) (string, error) {
	if tool == "" {
		return e.listings.of(u, e.config.Limits.InspectTokens), nil
	}
	if t := u.Tool(tool); t != nil {
		return string(describe(t)), nil
	}
	for _, joint := range joints {
		if name, ok := strings.CutPrefix(tool, u.Name+joint); ok && u.Tool(name) != nil {
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
	return describeAll(u, found, e.config.Limits.InspectTokens), nil
}

// Tools are the tools that a name, a glob or a comma list means, as Inspect
// takes them; without one, all. One is said of a single tool, by its name. What
// of a list is missing is left to Absent.
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
	if tools = match(u, tool); len(tools) == 0 {
		return nil, false, unknownTool(u, tool)
	}
	return tools, false, nil
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
