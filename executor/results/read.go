package results

import (
	"fmt"
	"unicode/utf8"

	"mcpx/internal/tokens"
)

// minBudget has room for a line of text and the position in every answer.
const minBudget = 100

// positionCost is more than the last line of an answer costs.
const positionCost = 40

// Query selects a part of a kept text.
type Query struct {
	ID     string
	Offset int    // in bytes, from the end if negative; with Grep the line to start at
	Limit  int    // in bytes, with Grep in lines; 0 is as much as fits
	Path   string // a JSON Pointer; * stands for every element
	Grep   string // an RE2 pattern: the answer has the lines that match, with their numbers
}

// Read returns a part of a text that Fit has cut for the same client. The last line
// says which part it is and where the next one starts.
func (s *Store) Read(client string, q Query) (string, error) {
	text, err := s.load(client, q.ID)
	if err != nil {
		return "", err
	}
	if q.Path != "" {
		if text, err = find(text, q.Path); err != nil {
			return "", fmt.Errorf("path %q of %s: %w", shorten(q.Path, maxLine), q.ID, err)
		}
	}
	if q.Grep != "" {
		return s.grep(text, q)
	}
	return s.window(text, q)
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
	end := start + tokens.Cut(rest, s.budget-positionCost)
	next := "end"
	if end < len(text) {
		next = fmt.Sprintf("next offset %d", end)
	}
	return fmt.Sprintf("%s\n[bytes %d-%d of %d; %s]", text[start:end], start, end, len(text), next), nil
}
