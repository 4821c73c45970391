package executor

import (
	"context"
	"fmt"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/search"
	"mcpx/internal/tokens"
	"mcpx/internal/upstream"
	"mcpx/registry"
	"mcpx/registry/lists"
)

// toolIndex is the search index of one catalog.
type toolIndex struct {
	search *search.Index
	tools  []indexedTool // by document number
}

// indexedTool is a tool and the name of its server.
type indexedTool struct {
	server string
	tool   *lists.Tool
}

func (e *Executor) searchTools(ctx context.Context, c Call, arguments []byte) (string, error) {
	e.Settle(ctx, c.Client, settleTime)
	x := e.searchIndex(c.Client)
	hits, servers := x.search.Search(text(arguments, "query"), integer(arguments, "limit", 10))
	budget := e.inspectTokens()
	states := e.stateNotes(c.Client)
	var b, notes strings.Builder
	for i, hit := range hits {
		t := x.tools[hit.Document]
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
		b.WriteString("no tool matches; servers: " + list(e.Servers(c.Client)) + "\n")
	}
	if missing := e.withoutTools(c.Client); len(missing) > 0 {
		b.WriteString("not searched, since their tools are not known: " + list(missing) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// maxStateNote is the longest note on the state of a server, in bytes.
const maxStateNote = 120

// stateNotes returns a line for each server that is not ready, by name.
func (e *Executor) stateNotes(c upstream.Client) map[string]string {
	notes := map[string]string{}
	for _, u := range e.registry.For(c).Catalog().Upstreams {
		if note := stateNote(u); note != "" {
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
		return t.server + ": " + fullLine(t.tool)
	}
	return t.server + ": " + withSentence(nameLine(t.tool), t.tool)
}

// searchIndex returns the index of what the client may see of the current catalog.
func (e *Executor) searchIndex(c upstream.Client) *toolIndex {
	return e.registry.For(c).Catalog().Derived("search index", func(c *registry.Catalog) any { return e.newIndex(c) }).(*toolIndex)
}

func (e *Executor) newIndex(catalog *registry.Catalog) *toolIndex {
	x := &toolIndex{}
	var documents []search.Document
	for _, u := range e.upstreams(catalog) {
		for _, t := range u.Tools {
			x.tools = append(x.tools, indexedTool{u.Name, t})
			documents = append(documents, search.Document{Name: t.Name, Server: u.Name, Description: t.Description, Parameters: parameters(t)})
		}
	}
	x.search = search.New(documents)
	return x
}

// parameters returns the names and descriptions of a tool's parameters.
func parameters(t *lists.Tool) string {
	var b strings.Builder
	for name, schema := range rawjson.Members(rawjson.Get(t.ShownSchema(), "properties")) {
		fmt.Fprintf(&b, "%s %s\n", name, text(schema, "description"))
	}
	return b.String()
}
