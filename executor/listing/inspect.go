package listing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// Match has the tools that a name, a glob or a comma-separated list names.
type Match struct {
	Upstream *live.Upstream
	Tools    []*lists.Tool
	IsName   bool     // it was the name of one tool
	Absent   []string // a line for each name in a list that matches no tool

	isGlob bool
}

// Find returns the tools of u that a name, a glob or a comma-separated list names. An empty
// pattern names all tools.
func Find(u *live.Upstream, pattern string) Match {
	if pattern == "" {
		return Match{Upstream: u, Tools: u.Tools}
	}
	if t := Tool(u, pattern); t != nil {
		return Match{Upstream: u, Tools: []*lists.Tool{t}, IsName: true}
	}
	m := Match{Upstream: u, Tools: match(u, pattern), isGlob: strings.ContainsAny(pattern, "*?[")}
	if len(m.Tools) > 0 {
		m.Absent = absent(u, pattern)
	}
	return m
}

// Separators occur in names between the server and the tool.
var Separators = []string{"__", ".", "/", ":"}

// Tool finds a tool of an upstream by its name, which may begin with the upstream's name.
func Tool(u *live.Upstream, name string) *lists.Tool {
	if t := u.Tool(name); t != nil {
		return t
	}
	for _, separator := range Separators {
		if short, ok := strings.CutPrefix(name, u.Name+separator); ok && u.Tool(short) != nil {
			return u.Tool(short)
		}
	}
	return nil
}

// WithNews returns the listing of all tools of an upstream with a line about tools that have
// changed, if they have. Only the first listing after the change has it.
func WithNews(u *live.Upstream, text string, budget int) string {
	news := u.News()
	if news == "" {
		return text
	}
	line := "\n" + plain.Cut(plain.Line(news), newsBytes)
	if tokens.Exceeds(text+line, budget) {
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
		lines = append(lines, fmt.Sprintf("no tool %s%s", Quoted(name), DidYouMean(name, ToolNames(u))))
	}
	return lines
}

// maxAbsent bounds the lines about absent tools.
const maxAbsent = 20

// Text returns the definitions of the tools that match, or a listing if it was a glob or they
// are too long. shape returns the shape of a tool's last result, "" if there was none.
func (m Match) Text(shape func(*lists.Tool) string, budget int) string {
	define := func(t *lists.Tool) string { return string(definition(t, shape(t))) }
	if m.IsName {
		return define(m.Tools[0])
	}
	full, ok := lines(m.Tools, define, budget)
	if !ok || m.isGlob || tokens.Exceeds(full, budget) {
		return listing(m.Upstream, m.Tools, budget)
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
