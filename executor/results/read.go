package results

import (
	"context"
	"fmt"
	"math"
	"unicode/utf8"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/tokens"
	"mcpx/internal/work"
)

// minBudget has room for a line of text and the position in every answer.
const minBudget = 100

// positionCost is more than the last line of an answer and a handle cost.
const positionCost = 60

// Query says which part of a kept result to read.
type Query struct {
	ID      string
	Offset  int              // in bytes, from the end if negative; with Grep the number of matches to skip
	Limit   int              // in bytes, with Grep in matches; 0 is as much as fits
	Path    string           // a JSON Pointer, with * for every element, or a path like items[3].title
	Grep    string           // an RE2 pattern: the answer has the lines or values that match
	Context int              // with Grep: lines or values before and after each match
	Select  *selection.Query // fields and rows; nil for all
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
	r, err := t.read(ctx, client, k)
	if err != nil {
		return "", err
	}
	defer r.lease.Release()
	if q.Select != nil && q.Select.Pattern != "" {
		q.Grep = q.Select.Pattern
	}
	if q.Path == "" && q.Grep != "" {
		return t.grepAll(r, q)
	}
	return t.readPath(r, q)
}

// readPath reads the values at a path. With a query, it returns only the part that the query
// selects.
func (t *Table) readPath(r *reading, q Query) (string, error) {
	root, err := r.root()
	if err != nil {
		return "", fmt.Errorf("%s: %w", q.ID, err)
	}
	f, err := r.find(root, q.Path)
	if err != nil {
		return "", fmt.Errorf("path %q of %s: %w", plain.Cut(q.Path, maxLine), q.ID, err)
	}
	switch {
	case q.Grep != "":
		return t.grep(r.ctx, valuesIn(f), q)
	case q.Select != nil:
		selected, err := f.apply(r.ctx, q.Select)
		if err != nil {
			return "", err
		}
		return answer(selected, t.budget())
	}
	value, err := f.json(math.MaxInt)
	if err != nil {
		return "", err
	}
	return t.window(rawjson.Text(value), q)
}

// grepAll searches the values of JSON, or the lines of a text.
func (t *Table) grepAll(r *reading, q Query) (string, error) {
	root, err := r.root()
	if canceled(r.ctx) != nil {
		return "", canceled(r.ctx)
	}
	if err != nil {
		return t.grep(r.ctx, linesOf(r.text), q)
	}
	return t.grep(r.ctx, valuesIn(&found{Watch: work.NewWatch(r.ctx), root: root, one: root}), q)
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
