package executor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"mcpx/executor/results"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/internal/upstream"
	"mcpx/registry/lists"
	"mcpx/registry/live"
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
	switch {
	case err != nil:
		return "", nil, err
	case tool == "" && m.Upstream == e.builtin.upstream:
		return e.builtinListing(c, e.inspectTokens()), nil, nil
	case tool == "":
		return e.withNews(m.Upstream, e.wholeListing(c, m.Upstream)), nil, nil
	}
	return e.describe(c, m, tool), m.Absent, nil
}

// Match has the tools that a name, a glob or a comma-separated list names.
type Match struct {
	Upstream *live.Upstream
	Tools    []*lists.Tool
	IsName   bool     // it was the name of one tool
	Absent   []string // a line for each name in a list that matches no tool
}

// Match finds tools as Inspect does, all tools if tool is empty.
func (e *Executor) Match(ctx context.Context, c upstream.Client, server, tool string) (Match, error) {
	u, err := e.Upstream(ctx, c, server)
	if err != nil {
		return Match{}, err
	}
	if tool == "" {
		return Match{Upstream: u, Tools: u.Tools}, nil
	}
	m := matchIn(u, tool)
	if len(m.Tools) == 0 && u.NeedsStart() { // the tool may be new
		if u, err = e.registry.For(c).Ready(ctx, u.Name); err != nil {
			return Match{}, err
		}
		m = matchIn(u, tool)
	}
	if len(m.Tools) == 0 {
		return Match{}, unknownTool(u, tool)
	}
	return m, nil
}

func matchIn(u *live.Upstream, tool string) Match {
	if t := toolOf(u, tool); t != nil {
		return Match{Upstream: u, Tools: []*lists.Tool{t}, IsName: true}
	}
	m := Match{Upstream: u, Tools: match(u, tool)}
	if len(m.Tools) > 0 {
		m.Absent = absent(u, tool)
	}
	return m
}

// withNews returns a listing with a line about tools that have changed, if they have. Only
// the first listing after the change has it.
func (e *Executor) withNews(u *live.Upstream, text string) string {
	news := u.News()
	if news == "" {
		return text
	}
	line := "\n" + plain.Cut(plain.Line(news), newsBytes)
	if budget := e.inspectTokens(); tokens.Exceeds(text+line, budget) {
		text = listing(u, u.Tools, budget-tokens.Count(line)-joinCost)
	}
	return text + line
}

// newsBytes bounds the line about tools that have changed.
const newsBytes = 400

// absent returns a line for each name in a comma-separated list that matches no tool of
// u, with suggestions, as many as an answer may have.
func absent(u *live.Upstream, tool string) (lines []string) {
	for name := range strings.SplitSeq(tool, ",") {
		if name = strings.TrimSpace(name); name == "" || len(match(u, name)) > 0 {
			continue
		}
		if len(lines) == maxAbsent {
			return append(lines, "… and further names")
		}
		lines = append(lines, fmt.Sprintf("no tool %s%s", quoted(name), didYouMean(name, toolNames(u))))
	}
	return lines
}

// maxAbsent bounds the lines about absent tools.
const maxAbsent = 20

// describe returns the text that Inspect shows of the tools that match.
func (e *Executor) describe(c upstream.Client, m Match, tool string) string {
	define := func(t *lists.Tool) string {
		return string(definition(t, e.results.Shape(ownerOf(c), results.Tool{Server: m.Upstream.Name, Name: t.Name})))
	}
	if m.IsName {
		return define(m.Tools[0])
	}
	full, ok := lines(m.Tools, define, e.inspectTokens())
	if !ok || strings.ContainsAny(tool, "*?[") || tokens.Exceeds(full, e.inspectTokens()) {
		return listing(m.Upstream, m.Tools, e.inspectTokens())
	}
	return full
}

// definition returns a tool's definition for models: minified, as the upstream sent it,
// without members for hosts, and with the type of its results instead of their schema.
// Without a schema it has the shape of the last result, if there was one.
func definition(t *lists.Tool, shape string) []byte {
	result := returns(t)
	if rawjson.Get(t.Raw, "returns") == nil {
		result = cmp.Or(result, shape)
	}
	b := []byte("{")
	for key, value := range rawjson.Members(t.Raw) {
		if !slices.Contains(hostMembers, key) && (key != "returns" || result == "") {
			b = rawjson.AppendMember(b, key, rawjson.Compact(value))
		}
	}
	if result != "" {
		b = rawjson.AppendMember(b, "returns", rawjson.AppendString(nil, result))
	}
	return append(b, '}')
}

// hostMembers are the members of a definition that models do not see. The built-in tool
// schema shows them.
var hostMembers = []string{"icons", "_meta", "outputSchema"}

// returnsTokens bounds the type of a tool's results in its definition.
const returnsTokens = 150

// returns returns the type of a tool's results, "" if it is not known.
func returns(t *lists.Tool) string {
	for limit := 5 * returnsTokens; ; limit = limit * 4 / 5 {
		text := t.Returns(limit)
		if !tokens.Exceeds(text, returnsTokens) || limit < returnsTokens/2 {
			return text
		}
	}
}
