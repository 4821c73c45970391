package validate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	maxShown  = 40 // characters of a value
	maxListed = 10 // values of a list
)

// Describe names a JSON value by its type and beginning, as problems do:
// `string "three"`.
func Describe(raw []byte) string {
	value, err := Decode(raw)
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

// show is a value as JSON, shortened, on one line.
func show(v any) string {
	if s, ok := v.(string); ok {
		head, more := cut(s, maxShown)
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
	return clip(strings.TrimSpace(b.String()), maxShown)
}

// clip shortens text to n characters and escapes what is not printable.
func clip(s string, n int) string {
	head, more := cut(s, n)
	var b strings.Builder
	for _, r := range head {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	if more {
		b.WriteString("…")
	}
	return b.String()
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

// orList is `a, b or c`.
func orList(items []string) string {
	last := len(items) - 1
	if len(items) > maxListed || last < 1 {
		return commaList(items)
	}
	return strings.Join(items[:last], ", ") + " or " + items[last]
}

// commaList is `a, b, c`, or the first of many.
func commaList(items []string) string {
	if len(items) <= maxListed {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s, … (%d in all)", strings.Join(items[:maxListed], ", "), len(items))
}

// canonical is a text that equal values share: 1 and 1.0 are equal, and so are
// objects in any order.
func canonical(v any) string { return string(appendCanonical(nil, v)) }

func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case json.Number:
		return append(b, rational(v).RatString()...)
	case string:
		return strconv.AppendQuote(b, v)
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = append(appendCanonical(b, item), ',')
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			b = append(strconv.AppendQuote(b, key), ':')
			b = append(appendCanonical(b, v[key]), ',')
		}
		return append(b, '}')
	}
	return fmt.Append(b, v)
}

// nearest is the candidate that was probably meant: letter case, dashes and
// underscores do not count, and one letter in three may be wrong.
func nearest(got string, candidates []string) (best string, ok bool) {
	got, long := cut(plainName(got), maxShown)
	if got == "" || long {
		return "", false
	}
	least := len([]rune(got))/3 + 1
	for _, c := range candidates {
		name, long := cut(plainName(c), maxShown)
		if long || name == "" {
			continue
		}
		if d := distance([]rune(got), []rune(name)); d < least {
			best, least, ok = c, d, true
		}
	}
	return best, ok
}

func plainName(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// distance counts the letters to insert, delete, replace or swap with the next
// to make a of b.
func distance(a, b []rune) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
