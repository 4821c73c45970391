package executor

import (
	"context"
	"slices"
	"strings"

	"mcpx/executor/results"
	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/tokens"
	"mcpx/internal/upstream"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// Reading is what an agent reads about a tool. Token counts are exact.
type Reading struct {
	Tokens        int    `json:"tokens"` // of the full definition, which the agent reads without mcpx
	Line          string `json:"line"`   // in the listing of its server; empty if the listing is too long for it
	LineTokens    int    `json:"line_tokens"`
	Inspect       string `json:"inspect"` // the definition that inspect shows
	InspectTokens int    `json:"inspect_tokens"`
}

// Reading returns what the agent of a client reads about a tool. It never waits.
func (e *Executor) Reading(c upstream.Client, u *live.Upstream, t *lists.Tool) Reading {
	r := Reading{Tokens: tokens.CountBytes(rawjson.Compact(t.Raw)), Inspect: string(definition(t, ""))}
	r.InspectTokens = tokens.Count(r.Inspect)
	listed := strings.Split(e.wholeListing(c, u), "\n")
	for _, line := range steps {
		if text := line(t); slices.Contains(listed, text) {
			r.Line, r.LineTokens = text, tokens.Count(text)
			break
		}
	}
	return r
}

// Hit is a tool that a search has found.
type Hit struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
}

// Search returns the tools that the built-in tool search finds for a client, the best
// first. It never waits.
func (e *Executor) Search(c upstream.Client, query string, limit int) []Hit {
	x := e.searchIndex(c)
	found, _ := x.search.Search(query, limit)
	hits := []Hit{}
	for _, hit := range found {
		if t := x.tools[hit.Document]; t.server != Builtin {
			hits = append(hits, Hit{t.server, t.tool.Name})
		}
	}
	return hits
}

// Preview is what an agent would read of a result.
type Preview struct {
	Tokens   int    `json:"tokens"`             // of the result's texts
	Selected int    `json:"selected,omitempty"` // tokens of what exec returns with the select
	Text     string `json:"text,omitempty"`     // what exec returns with the select
}

// Preview returns what exec would return of a result with a select, which may be empty. It
// keeps nothing. It waits until there is room for the work.
func (e *Executor) Preview(ctx context.Context, result []byte, fields string) (p Preview, err error) {
	private := e.results.Options
	private.Sharing = results.Sharing{}
	shown := results.New(private)
	if p.Tokens, _, err = read(ctx, shown, result); err != nil || strings.TrimSpace(fields) == "" {
		return p, err
	}
	q, err := selection.Parse(fields)
	if err != nil {
		return p, err
	}
	r, err := shown.Open(ctx, "", result, q)
	if err != nil {
		return p, err
	}
	selected, err := r.Fit()
	r.Close()
	if err != nil {
		return p, err
	}
	p.Selected, p.Text, err = read(ctx, shown, selected)
	return p, err
}

// read returns the texts of a result, and their tokens.
func read(ctx context.Context, s *results.Store, result []byte) (tokens int, text string, err error) {
	r, err := s.Open(ctx, "", result, nil)
	if err != nil {
		return 0, "", err
	}
	defer r.Close()
	return r.Tokens(), r.Text(), nil
}
