// Package search adds the built-in tool search, which ranks the tools of all servers by how
// well they fit a few words, and the search of the console.
// Hooks: executor.BuiltinTool, httpfront.Route.
package search

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mcpx/executor"
	"mcpx/executor/listing"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/registry"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// Tool returns the built-in tool search.
func Tool() executor.BuiltinTool {
	return executor.BuiltinTool{
		Name: "search", Description: "Find tools of all servers by what they do, best first.",
		Schema:         `{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":50,"default":10}},"required":["query"]}`,
		NeedsUpstreams: true,
		Call:           call,
	}
}

// settleTime is how long a search waits for upstreams in their first start.
const settleTime = 5 * time.Second

// call runs the tool search.
func call(ctx context.Context, e *executor.Executor, c executor.Call, arguments []byte) (string, error) {
	e.Settle(ctx, c.Client, settleTime)
	catalog := e.Catalog(c.Client)
	x := indexOf(e, catalog)
	query, _ := rawjson.String(rawjson.Get(arguments, "query"))
	hits, servers := x.words.search(query, executor.Integer(arguments, "limit", 10))
	budget := e.InspectTokens()
	states := stateNotes(catalog)
	var b, notes strings.Builder
	for i, hit := range hits {
		t := x.tools[hit.document]
		line, note := t.line(i)+"\n", states[t.server]
		if budget -= tokens.Count(line + note); budget < 0 && i > 0 {
			break
		}
		b.WriteString(line)
		notes.WriteString(note)
		delete(states, t.server) // once is enough
	}
	b.WriteString(notes.String())
	for _, name := range servers {
		fmt.Fprintf(&b, "%s: only the server's name matches; inspect(%q) lists its tools\n", name, name)
	}
	if b.Len() == 0 {
		b.WriteString("no tool matches; servers: " + listing.Names(e.Servers(c.Client)) + "\n")
	}
	if missing := withoutTools(catalog); len(missing) > 0 {
		b.WriteString("not searched, since their tools are not known: " + listing.Names(missing) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// toolIndex is the search index of one catalog.
type toolIndex struct {
	words *index
	tools []indexedTool // by document number
}

// indexedTool is a tool and the name of its server.
type indexedTool struct {
	server string
	tool   *lists.Tool
}

// withoutTools returns the names and states of the servers whose tools are not known.
func withoutTools(c *registry.Catalog) (names []string) {
	for _, u := range c.Upstreams {
		if len(u.Tools) == 0 && u.State != live.Ready {
			names = append(names, fmt.Sprintf("%s (%s)", u.Name, u.State))
		}
	}
	return names
}

// maxStateNote is the longest note on the state of a server, in bytes.
const maxStateNote = 120

// stateNotes returns a line for each server that is not ready, by name.
func stateNotes(c *registry.Catalog) map[string]string {
	notes := map[string]string{}
	for _, u := range c.Upstreams {
		if note := listing.StateNote(u); note != "" {
			notes[u.Name] = fmt.Sprintf("%s: %s\n", u.Name, plain.Cut(note, maxStateNote))
		}
	}
	return notes
}

// signedHits is how many hits have signatures. The right tool is mostly one of them, and
// a signature costs more than the rest of a line.
const signedHits = 3

// line returns the line of the hit at a place.
func (t indexedTool) line(place int) string {
	if place < signedHits {
		return t.server + ": " + listing.FullLine(t.tool)
	}
	return t.server + ": " + listing.SentenceLine(t.tool)
}

// indexOf returns the index of a catalog, which keeps it.
func indexOf(e *executor.Executor, c *registry.Catalog) *toolIndex {
	return c.Derived("search index", func(c *registry.Catalog) any { return newToolIndex(e.Upstreams(c)) }).(*toolIndex)
}

func newToolIndex(upstreams []*live.Upstream) *toolIndex {
	x := &toolIndex{}
	var documents []document
	for _, u := range upstreams {
		for _, t := range u.Tools {
			x.tools = append(x.tools, indexedTool{u.Name, t})
			documents = append(documents, document{
				Name: t.Name, Server: u.Name, Description: t.Description, Parameters: parameters(t),
				About: u.Description, Minor: u.Name == executor.Builtin,
			})
		}
	}
	x.words = newIndex(documents)
	return x
}

// parameters returns the names and descriptions of a tool's parameters.
func parameters(t *lists.Tool) string {
	var b strings.Builder
	for name, schema := range rawjson.Members(rawjson.Get(t.ShownSchema(), "properties")) {
		description, _ := rawjson.String(rawjson.Get(schema, "description"))
		fmt.Fprintf(&b, "%s %s\n", name, description)
	}
	return b.String()
}
