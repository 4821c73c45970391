package executor

import (
	"context"
	"strings"

	"mcpx/executor/results"
	"mcpx/internal/selection"
)

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
	private.Shelf = nil
	shown := results.New(private)
	if p.Tokens, _, err = read(ctx, shown, result); err != nil || strings.TrimSpace(fields) == "" {
		return p, err
	}
	q, err := selection.Parse(fields)
	if err != nil {
		return p, err
	}
	if q, err = shown.Bind(ctx, "", q, maxReferenceBytes); err != nil {
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
func read(ctx context.Context, s *results.Table, result []byte) (tokens int, text string, err error) {
	r, err := s.Open(ctx, "", result, nil)
	if err != nil {
		return 0, "", err
	}
	defer r.Close()
	return r.Tokens(), r.Text(), nil
}
