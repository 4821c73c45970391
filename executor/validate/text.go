package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpx/internal/nearest"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

const (
	maxShown  = 40 // characters of a value
	maxListed = 10 // values of a list
)

// Describe names a JSON value by its type and beginning, as problems do:
// `string "three"`.
func Describe(raw []byte) string {
	value, err := decode(raw, math.MaxInt)
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
	return clip(string(appendHead(nil, v, n)), n)
}

// appendHead appends a value as JSON. It may end early, after more than n characters.
func appendHead(b []byte, v any, n int) []byte {
	switch v := v.(type) {
	case string:
		head, _ := cut(v, n+1)
		return rawjson.AppendString(b, head)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if len(b) > n*utf8.UTFMax {
				return b
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = appendHead(b, item, n)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if len(b) > n*utf8.UTFMax {
				return b
			}
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendHead(b, key, n), ':')
			b = appendHead(b, v[key], n)
		}
		return append(b, '}')
	}
	var whole bytes.Buffer
	encoder := json.NewEncoder(&whole)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return append(b, "…"...)
	}
	return append(b, bytes.TrimSpace(whole.Bytes())...)
}

// showRule returns a rule as JSON Schema, shortened.
func showRule(r *rule) string { return show((&document{root: r, is2020: true, isShown: true}).body(r)) }

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

	// maxEagerBytes bounds the allowed values that are compared with a wrong one before it is
	// known whether the problem is reported.
	maxEagerBytes = 1000

	// maxLongLists is how many problems have lists of more allowed values.
	maxLongLists = 5
)

// wrongValue reports a value that an enum or const does not have, and the values that
// it has, the nearest first. If these are many, report lists them.
func wrongValue(allowed []any, value any, at []string) finding {
	f := finding{allowed: allowed, got: value}
	if f.isLong = areLong(allowed); f.isLong {
		f.Problem = problem(at, "expected one of %s, got %s", plain.Count(len(allowed), "value"), show(value)).Problem
		return f
	}
	f.Problem = problem(at, "%s", f.listAllowed()).Problem
	return f
}

// areLong reports whether values have more than maxEagerBytes.
func areLong(values []any) bool {
	size := 0
	for _, v := range values {
		if size += len(appendHead(nil, v, maxEagerBytes)); size > maxEagerBytes {
			return true
		}
	}
	return false
}

// listAllowed returns the text of a problem with all allowed values.
func (f finding) listAllowed() string {
	allowed, hint := f.allowed, ""
	if got, ok := f.got.(string); ok && len(allowed) > 1 {
		texts := shortTexts(allowed)
		if near := suggest(got, texts); near != "" {
			hint = fmt.Sprintf("; did you mean %s?", showUpTo(near, maxAllowedShown))
		}
		allowed = nearestFirst(got, texts, allowed)
	}
	return fmt.Sprintf("expected %s, got %s%s", allowedList(allowed), show(f.got), hint)
}

// shortTexts returns the values that a text is compared with: strings that a caller may have
// misspelled.
func shortTexts(values []any) (texts []string) {
	for _, v := range values {
		if text, ok := v.(string); ok && len(text) <= maxEagerBytes {
			texts = append(texts, text)
		}
	}
	return texts
}

// nearestFirst returns the values, with those of texts first that are similar to got.
func nearestFirst(got string, texts []string, values []any) []any {
	got, _ = cut(got, maxCompared)
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
