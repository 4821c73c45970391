// Package search adds the built-in tool search, which ranks the tools of all servers by how
// well they fit a few words, and the search of the console. If the config has an endpoint for
// embeddings, search also compares meanings.
// Hooks: executor.BuiltinTool, httpfront.Route. Config: search.
package search

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/executor"
	"mcpx/executor/listing"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/registry"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// Search searches the tools of an mcpx. Its methods may be called concurrently.
type Search struct {
	folder string // for vectors; empty: they are only in memory
	log    zerolog.Logger

	mu       sync.Mutex
	settings Settings
	dense    *dense // nil without embeddings
}

// New returns a Search whose cache is in a folder, which is created when it is needed.
func New(folder string, log zerolog.Logger) *Search { return &Search{folder: folder, log: log} }

// Apply puts settings into use.
func (s *Search) Apply(next Settings) {
	s.mu.Lock()
	if reflect.DeepEqual(s.settings, next) {
		s.mu.Unlock()
		return
	}
	old := s.dense
	s.settings, s.dense = next, nil
	if next.Embeddings.Address.URL != "" {
		s.dense = newDense(next.Embeddings, s.folder, s.log)
	}
	s.mu.Unlock()
	if old != nil {
		old.close()
	}
}

// Close ends the work in the background. Searches compare only words from then on.
func (s *Search) Close() { s.Apply(Settings{}) }

// Tool returns the built-in tool search.
func (s *Search) Tool() executor.BuiltinTool {
	return executor.BuiltinTool{
		Name: "search", Description: "Find tools of all servers by what they do, best first.",
		Schema:         `{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":50,"default":10}},"required":["query"]}`,
		NeedsUpstreams: true,
		Call:           s.call,
	}
}

// find returns the tools that fit a query, best first, and the servers of which only the name
// fits.
func (s *Search) find(ctx context.Context, x *toolIndex, query string, limit int) (hits []hit, servers []string) {
	s.mu.Lock()
	d := s.dense
	s.mu.Unlock()
	if d == nil || strings.TrimSpace(query) == "" {
		return x.words.search(query, limit)
	}
	hits, servers = x.words.search(query, fuseDepth)
	if near := d.rank(ctx, x, query); len(near) > 0 {
		hits = merge([][]hit{hits, near})
	}
	hits = hits[:min(max(limit, 0), len(hits))]
	return hits, slices.DeleteFunc(servers, func(name string) bool {
		return slices.ContainsFunc(hits, func(h hit) bool { return x.tools[h.document].server == name })
	})
}

// settleTime is how long a search waits for upstreams in their first start.
const settleTime = 5 * time.Second

// call runs the tool search.
func (s *Search) call(ctx context.Context, e *executor.Executor, c executor.Call, arguments []byte) (string, error) {
	e.Settle(ctx, c.Client, settleTime)
	catalog := e.Catalog(c.Client)
	x := indexOf(e, catalog)
	query, _ := rawjson.String(rawjson.Get(arguments, "query"))
	hits, servers := s.find(ctx, x, query, executor.Integer(arguments, "limit", 10))
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

	textsOnce sync.Once
	textsMade *toolTexts
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
