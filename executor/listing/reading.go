package listing

import (
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/registry/lists"
)

// Reading is what an agent reads about a tool. Token counts are exact.
type Reading struct {
	Tokens        int    `json:"tokens"` // of the full definition, which the agent reads without mcpx
	Line          string `json:"line"`   // in the listing of its server; empty if the listing is too long for it
	LineTokens    int    `json:"line_tokens"`
	Inspect       string `json:"inspect"` // the definition that inspect shows
	InspectTokens int    `json:"inspect_tokens"`
}

// ReadingOf returns what an agent reads about a tool. whole is the listing of its server.
func ReadingOf(t *lists.Tool, whole string) Reading {
	r := Reading{Tokens: tokens.CountBytes(rawjson.Compact(t.Raw)), Inspect: string(definition(t, ""))}
	r.InspectTokens = tokens.Count(r.Inspect)
	name := nameLine(t)
	for line := range strings.SplitSeq(whole, "\n") {
		if line == name || strings.HasPrefix(line, name+"(") {
			r.Line, r.LineTokens = line, tokens.Count(line)
			break
		}
	}
	return r
}
