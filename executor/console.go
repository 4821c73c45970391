package executor

import (
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
// keeps nothing.
func (e *Executor) Preview(result []byte, fields string) (Preview, error) {
	p := Preview{Tokens: results.NewResult(result).Tokens()}
	if strings.TrimSpace(fields) == "" {
		return p, nil
	}
	q, err := selection.Parse(fields)
	if err != nil {
		return p, err
	}
	private := e.results.Options
	private.Sharing = results.Sharing{}
	selected := results.NewResult(results.New(private).Select("", results.NewResult(result), q))
	p.Selected, p.Text = selected.Tokens(), selected.Text()
	return p, nil
}
