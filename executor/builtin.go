package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"mcpx/executor/results"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/search"
	"mcpx/internal/tokens"
	"mcpx/registry"
)

// Builtin is the name of the server that mcpx itself is. It is reached through
// the same two tools as any other, and costs nothing until then.
const Builtin = "mcpx"

// builtin answers the calls to mcpx's own tools.
type builtin struct {
	upstream *registry.Upstream
	flat     *registry.Upstream // the same with the tools that flat mode lists
	tools    map[string]builtinTool
	index    atomic.Pointer[toolIndex]
}

type builtinTool func(ctx context.Context, c Call, arguments []byte) (string, error)

// NeedsUpstreams reports whether the answer of a tool of the built-in server
// depends on the other servers, so that they must have been started.
func NeedsUpstreams(tool string) bool {
	for _, joint := range joints { // as find takes it
		tool = strings.TrimPrefix(tool, Builtin+joint)
	}
	return tool == "search" || tool == "servers"
}

// toolIndex is the search index of one catalog.
type toolIndex struct {
	catalog *registry.Catalog
	search  *search.Index
	tools   []found
}

// found is a tool and where it is.
type found struct {
	server string
	tool   *registry.Tool
}

// flatTools are those of mcpx's own tools that flat mode lists. Its clients see all
// tools already, and no result of theirs is cut: they need no others.
var flatTools = []string{"servers", "show_config"}

func newBuiltin(e *Executor) builtin {
	var definitions, flat []registry.Item
	run := map[string]builtinTool{}
	for _, t := range []struct {
		name, description, schema string
		run                       builtinTool
	}{
		{
			"search", "Find tools of all servers by what they do. Answers server, tool and signature, best first.",
			`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":50,"default":10}},"required":["query"]}`,
			e.searchTools,
		},
		{
			"read_result", "Read on in a cut result: by bytes, JSON Pointer, or lines matching an RE2 pattern. A negative offset counts from the end; in a path * stands for every element; with grep, offset and limit count lines.",
			`{"type":"object","properties":{"id":{"type":"string"},"offset":{"type":"integer","default":0},"limit":{"type":"integer","minimum":1},"path":{"type":"string"},"grep":{"type":"string"}},"required":["id"]}`,
			e.readResult,
		},
		{
			"servers", "State, number of tools and token cost of every server.",
			`{"type":"object","properties":{}}`,
			e.listServers,
		},
		{
			"show_config", "The configuration in use, secrets hidden.",
			`{"type":"object","properties":{}}`,
			func(context.Context, Call, []byte) (string, error) { return string(e.config.Show()), nil },
		},
	} {
		definition, _ := json.Marshal(map[string]any{"name": t.name, "description": t.description, "inputSchema": json.RawMessage(t.schema)})
		definitions = append(definitions, registry.Item{Key: t.name, Raw: definition})
		if slices.Contains(flatTools, t.name) {
			flat = append(flat, registry.Item{Key: t.name, Raw: definition})
		}
		run[t.name] = t.run
	}
	return builtin{upstream: registry.NewUpstream(Builtin, definitions), flat: registry.NewUpstream(Builtin, flat), tools: run}
}

// callBuiltin runs one of mcpx's own tools.
func (e *Executor) callBuiltin(ctx context.Context, c Call, arguments []byte) ([]byte, error) {
	answer, err := e.builtin.tools[c.Tool](ctx, c, arguments)
	if err != nil {
		return nil, err
	}
	return TextResult(answer), nil
}

// text is a string argument, empty if it is not given.
func text(arguments []byte, key string) string {
	s, _ := rawjson.String(rawjson.Get(arguments, key))
	return s
}

// integer is an integer argument in any way JSON can write one: 6 and 6.0 are
// the same.
func integer(arguments []byte, key string, otherwise int) int {
	f, err := strconv.ParseFloat(string(rawjson.Get(arguments, key)), 64)
	if err != nil {
		return otherwise
	}
	return int(min(max(f, -1<<50), 1<<50))
}

// TextResult is the result of a tool that says one thing.
func TextResult(text string) []byte {
	b := rawjson.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	return append(b, "}]}"...)
}

func (e *Executor) readResult(_ context.Context, c Call, arguments []byte) (string, error) {
	return e.results.Read(ownerOf(c.Client), results.Query{
		ID:     text(arguments, "id"),
		Offset: integer(arguments, "offset", 0),
		Limit:  integer(arguments, "limit", 0),
		Path:   text(arguments, "path"),
		Grep:   text(arguments, "grep"),
	})
}

func (e *Executor) searchTools(ctx context.Context, _ Call, arguments []byte) (string, error) {
	e.Settle(ctx, settleTime)
	x := e.searchIndex()
	budget := e.config.Limits.InspectTokens
	var b strings.Builder
	for _, hit := range x.search.Search(text(arguments, "query"), integer(arguments, "limit", 10)) {
		f := x.tools[hit.Document]
		line := f.server + ": " + fullLine(f.tool) + "\n"
		if budget -= tokens.Estimate(line); budget < 0 && b.Len() > 0 {
			break
		}
		b.WriteString(line)
	}
	if b.Len() == 0 {
		b.WriteString("no tool matches; servers: " + list(e.Servers()) + "\n")
	}
	if missing := e.unknown(); len(missing) > 0 {
		b.WriteString("not searched, since their tools are not known: " + list(missing) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// settleTime is what a search waits for upstreams in their first start.
const settleTime = 5 * time.Second

// Settle waits for the upstreams in their first start, that long at most.
func (e *Executor) Settle(ctx context.Context, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for _, u := range e.registry.Catalog().Upstreams {
		if u.InFirstStart() {
			e.registry.Settled(ctx, u.Name)
		}
	}
}

// unknown names the servers whose tools are not known.
func (e *Executor) unknown() (names []string) {
	for _, u := range e.registry.Catalog().Upstreams {
		if len(u.Tools) == 0 && u.State != registry.Ready {
			names = append(names, fmt.Sprintf("%s (%s)", u.Name, u.State))
		}
	}
	return names
}

// searchIndex is the index of the catalog as it is now, made anew when that has
// changed.
func (e *Executor) searchIndex() *toolIndex {
	catalog := e.registry.Catalog()
	if x := e.builtin.index.Load(); x != nil && x.catalog == catalog {
		return x
	}
	x := &toolIndex{catalog: catalog}
	var documents []search.Document
	for _, u := range e.upstreams(catalog) {
		for _, t := range u.Tools {
			x.tools = append(x.tools, found{u.Name, t})
			documents = append(documents, search.Document{Name: t.Name, Server: u.Name, Description: t.Description, Parameters: parameters(t)})
		}
	}
	x.search = search.New(documents)
	e.builtin.index.Store(x)
	return x
}

// parameters are the names and descriptions of a tool's parameters.
func parameters(t *registry.Tool) string {
	var b strings.Builder
	for name, schema := range rawjson.Members(rawjson.Get(t.ShownSchema(), "properties")) {
		description, _ := rawjson.String(rawjson.Get(schema, "description"))
		fmt.Fprintf(&b, "%s %s\n", name, description)
	}
	return b.String()
}

func (e *Executor) listServers(context.Context, Call, []byte) (string, error) {
	var b strings.Builder
	for _, u := range e.registry.Catalog().Upstreams {
		fmt.Fprintf(&b, "%s: %s, %s, ~%d tokens in full", u.Name, u.State, count(len(u.Tools), "tool"), u.Tokens())
		if u.State == registry.Ready {
			fmt.Fprintf(&b, ", started in %s", u.StartupTime.Round(time.Millisecond))
		}
		if u.Reason != "" {
			fmt.Fprintf(&b, "; %s", u.Reason)
		}
		for _, t := range u.Tools {
			if reason := validatorOf(t).Unjudged(); reason != "" {
				fmt.Fprintf(&b, "; %s is not checked: %s", plain.Line(t.Name), plain.Line(reason))
			}
		}
		if u.Description != "" {
			fmt.Fprintf(&b, "; %s", plain.Line(u.Description))
		}
		b.WriteByte('\n')
	}
	return b.String() + Builtin + ": built in", nil
}
