package results

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/tokens"
)

// minBudget has room for a line of text and the position in every answer.
const minBudget = 100

// positionCost is more than the last line of an answer and a handle cost.
const positionCost = 60

// Query says which part of a kept result to read.
type Query struct {
	ID     string
	Offset int              // in bytes, with Grep in matches; from the end if negative
	Limit  int              // in bytes, with Grep in matches; 0 is as much as fits
	Path   string           // a JSON Pointer, with * for every element, or a path like items[3].title
	Grep   string           // an RE2 pattern: the answer has the lines or values that match
	Before int              // with Grep: lines or values before each match
	After  int              // with Grep: lines or values after each match
	Select *selection.Query // fields and rows; nil for all
}

// isWindow reports whether a query only names bytes of the text.
func (q Query) isWindow() bool { return q.Path == "" && q.Grep == "" && q.Select == nil }

// startIn returns the offset from the start of a text.
func (q Query) startIn(size int) int {
	if q.Offset < 0 {
		return max(0, size+q.Offset)
	}
	return q.Offset
}

// Read returns a part of a result that is kept for the client. The last line says which
// part it is and where the next one starts. It waits until there is room for the work. It
// fails if the context ends.
func (t *Table) Read(ctx context.Context, client string, q Query) (string, error) {
	k, err := t.load(ctx, client, q.ID)
	switch {
	case err != nil:
		return "", err
	case q.isWindow():
		return t.window(k.text, q)
	}
	r, err := t.read(ctx, client, k, q.Select)
	if err != nil {
		return "", err
	}
	defer r.lease.Release()
	f, err := r.at(q.Path)
	switch {
	case errors.Is(err, errNotJSON), canceled(ctx) != nil:
		return "", fmt.Errorf("%s: %w", q.ID, err)
	case err != nil:
		return "", fmt.Errorf("path %q of %s: %w", plain.Cut(q.Path, maxLine), q.ID, err)
	case q.Grep != "":
		return t.grep(ctx, r.searched(f), q, t.budget())
	case q.Select != nil:
		return t.selectIn(r, q.Path, q.Select)
	}
	value, err := f.json(math.MaxInt)
	if err != nil {
		return "", err
	}
	return t.window(rawjson.Text(value), q)
}

// budget returns the tokens that an answer may have.
func (t *Table) budget() int {
	if t.Tokens <= 0 {
		return math.MaxInt32
	}
	return max(t.Tokens, minBudget)
}

// window returns the text from the offset on, as much as fits.
func (t *Table) window(text string, q Query) (string, error) {
	start := q.startIn(len(text))
	if start > 0 && start >= len(text) {
		return "", fmt.Errorf("offset %d is past the end: there are %d bytes", start, len(text))
	}
	start = plain.RuneStart(text, start)
	rest := text[start:]
	if q.Limit > 0 && q.Limit < len(rest) {
		// At least one rune, or the reader would be stuck.
		_, first := utf8.DecodeRuneInString(rest)
		rest = rest[:max(plain.RuneStart(rest, q.Limit), first)]
	}
	length := tokens.Cut(rest, t.budget()-positionCost)
	end, next := start+length, "end"
	if end < len(text) {
		next = fmt.Sprintf("next offset %d", end)
	}
	return fmt.Sprintf("%s\n[bytes %d-%d of %d; %s]", rest[:length], start, end, len(text), next), nil
}
