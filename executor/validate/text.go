package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/nearest"
	"mcpx/internal/plain"
	"mcpx/internal/tokens"
)

const (
	maxShown  = 40 // characters of a value
	maxListed = 10 // values of a list
)

// Describe names a JSON value by its type and beginning, as problems do:
// `string "three"`.
func Describe(raw []byte) string {
	value, _, err := decode(raw)
	if err != nil {
		return err.Error()
	}
	return describe(value)
}

func describe(v any) string {
	if v == nil {
		return "null"
	}
	return typeName(v) + " " + show(v)
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// show returns a value as JSON, shortened, on one line.
func show(v any) string { return showUpTo(v, maxShown) }

// showUpTo is show with at most n characters of the value.
func showUpTo(v any, n int) string {
	if s, ok := v.(string); ok {
		head, more := cut(s, n)
		quoted := strconv.Quote(head)
		if more {
			quoted = strings.TrimSuffix(quoted, `"`) + `…"`
		}
		return quoted
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "…"
	}
	return clip(strings.TrimSpace(b.String()), n)
}

// showRule returns a rule as JSON Schema, shortened.
func showRule(r *rule) string { return show((&document{root: r, modern: true}).body(r)) }

// clip shortens a text to n characters and escapes unprintable ones.
func clip(s string, n int) string {
	head, more := cut(s, n)
	if more {
		return plain.Line(head) + "…"
	}
	return plain.Line(head)
}

// cut returns the first n characters and whether there are more.
func cut(s string, n int) (head string, more bool) {
	for i := range s {
		if n--; n < 0 {
			return s[:i], true
		}
	}
	return s, false
}

// orList returns `a, b or c`.
func orList(items []string) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:last], ", ") + " or " + items[last]
}

// commaList returns `a, b, c`, or the first of many.
func commaList(items []string) string {
	if len(items) <= maxListed {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s, … (%d in all)", strings.Join(items[:maxListed], ", "), len(items))
}

// maxCompared is how many characters of a text are compared with others.
const maxCompared = 100

// suggest returns the candidate that a text was probably meant to be, "" if there is
// none.
func suggest(got string, candidates []string) string {
	if _, long := cut(got, maxCompared); long {
		return ""
	}
	return nearest.Word(got, candidates)
}

const (
	// maxAllowedTokens bounds the list of allowed values in a problem. The values are
	// counted one by one: together they may have a few tokens more, but never 300.
	maxAllowedTokens = 280

	// maxAllowedShown bounds the characters of one allowed value.
	maxAllowedShown = 4000

	// maxComparisons bounds the search for near values: characters of the value times
	// characters of all allowed ones.
	maxComparisons = 300_000
)

// wrongValue reports a value that an enum or const does not have, and the values that
// it has, the nearest first.
func wrongValue(allowed []any, value any, at []string) finding {
	f := finding{allowed: allowed}
	hint := ""
	if got, ok := value.(string); ok && len(allowed) > 1 {
		if near := suggest(got, onlyStrings(allowed)); near != "" {
			hint = fmt.Sprintf("; did you mean %s?", showUpTo(near, maxAllowedShown))
		}
		allowed = nearestFirst(got, allowed)
	}
	f.Problem = problem(at, "expected %s, got %s%s", allowedList(allowed), show(value), hint).Problem
	return f
}

func onlyStrings(values []any) (texts []string) {
	for _, v := range values {
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// nearestFirst returns the values with those first that are like a text.
func nearestFirst(got string, values []any) []any {
	got, _ = cut(got, maxCompared)
	texts := onlyStrings(values)
	work := 0
	for i, text := range texts {
		if work += (1 + len(got)) * len(text); work > maxComparisons {
			texts = texts[:i]
			break
		}
	}
	var sorted []any
	near := map[string]bool{}
	for _, text := range nearest.Words(got, texts, len(texts)) {
		sorted = append(sorted, text)
		near[text] = true
	}
	return append(sorted, slices.DeleteFunc(slices.Clone(values), func(v any) bool {
		text, ok := v.(string)
		return ok && near[text]
	})...)
}

// allowedList returns `a, b or c`: whole values, as many as there is room for.
func allowedList(values []any) string {
	var shown []string
	room := maxAllowedTokens
	for _, v := range values {
		text := showUpTo(v, maxAllowedShown)
		if room -= tokens.Count(text) + 2; room < 0 {
			break
		}
		shown = append(shown, text)
	}
	switch {
	case len(shown) == 0:
		return tokens.Shorten(showUpTo(values[0], maxAllowedShown), maxAllowedTokens)
	case len(shown) < len(values):
		return fmt.Sprintf("%s, … (%d in all)", strings.Join(shown, ", "), len(values))
	}
	return orList(shown)
}
