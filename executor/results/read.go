package results

import (
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
	ID      string
	Offset  int              // in bytes, from the end if negative; with Grep the number of matches to skip
	Limit   int              // in bytes, with Grep in matches; 0 is as much as fits
	Path    string           // a JSON Pointer, with * for every element, or a path like items[3].title
	Grep    string           // an RE2 pattern: the answer has the lines or values that match
	Context int              // with Grep: lines or values before and after each match
	Select  *selection.Query // fields and rows; nil for all
}

// Read returns a part of a result that is kept for the client. The last line says which
// part it is and where the next one starts.
func (s *Store) Read(client string, q Query) (string, error) {
	k, err := s.load(client, q.ID)
	if err != nil {
		return "", err
	}
	if q.Select != nil && q.Select.Pattern != "" {
		q.Grep = q.Select.Pattern
	}
	if q.Path == "" && (q.Select == nil || q.Grep != "") {
		return s.readWhole(k, q)
	}
	root, err := k.parse()
	if err != nil {
		return "", fmt.Errorf("%s: %w", q.ID, err)
	}
	found, several, err := find(root, q.Path)
	if err != nil {
		return "", fmt.Errorf("path %q of %s: %w", plain.Cut(q.Path, maxLine), q.ID, err)
	}
	switch {
	case q.Grep != "":
		return s.grep(valuesIn(root, found), q)
	case q.Select != nil:
		return s.selected(q.Select, found, several)
	}
	return s.window(join(found, several), q)
}

// readWhole reads a result without a path.
func (s *Store) readWhole(k kept, q Query) (string, error) {
	if q.Grep == "" {
		return s.window(k.text, q)
	}
	return s.grepAll(k, q)
}

// grepAll searches the values of JSON, or the lines of a text.
func (s *Store) grepAll(k kept, q Query) (string, error) {
	if root, err := k.parse(); err == nil {
		return s.grep(valuesIn(root, []rawjson.Node{root}), q)
	}
	return s.grep(linesOf(k.text), q)
}

// selected applies a select to the values that a path has found.
func (s *Store) selected(q *selection.Query, found []rawjson.Node, several bool) (string, error) {
	value, err := joinNodes(found, several)
	if err != nil {
		return "", err
	}
	return answer(q.Apply(value), s.budget()), nil
}

// budget returns the tokens that an answer may have.
func (s *Store) budget() int {
	if s.Tokens <= 0 {
		return math.MaxInt32
	}
	return max(s.Tokens, minBudget)
}

func (s *Store) window(text string, q Query) (string, error) {
	start := q.Offset
	if start < 0 {
		start = max(0, len(text)+start)
	}
	if start > 0 && start >= len(text) {
		return "", fmt.Errorf("offset %d is past the end: there are %d bytes", start, len(text))
	}
	start = runeStart(text, start)
	rest := text[start:]
	if q.Limit > 0 && q.Limit < len(rest) {
		// At least one rune, or the reader would be stuck.
		_, first := utf8.DecodeRuneInString(rest)
		rest = rest[:max(runeStart(rest, q.Limit), first)]
	}
	end := start + tokens.Cut(rest, s.budget()-positionCost)
	next := "end"
	if end < len(text) {
		next = fmt.Sprintf("next offset %d", end)
	}
	return fmt.Sprintf("%s\n[bytes %d-%d of %d; %s]", text[start:end], start, end, len(text), next), nil
}
