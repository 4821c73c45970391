package results

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"mcpx/internal/rawjson"
)

// child is a member of an object or an element of an array by its place in the
// JSON text, which package rawjson does not tell: what is around it can then be
// kept as it is.
type child struct {
	key        string // as written, quotes and all; empty in an array
	start, end int    // with the key
	value      int    // where the value starts
}

// children are the members or elements of the JSON value at an offset of raw,
// which must be valid; none if it is neither object nor array.
func children(raw string, at int) iter.Seq[child] {
	return func(yield func(child) bool) {
		isObject := raw[at] == '{'
		if !isObject && raw[at] != '[' {
			return
		}
		i := skipSpace(raw, at+1)
		for raw[i] != '}' && raw[i] != ']' {
			c := child{start: i, value: i}
			if isObject {
				end := skipString(raw, i)
				c.key = raw[i:end]
				colon := skipSpace(raw, end)
				c.value = skipSpace(raw, colon+1)
			}
			c.end = skipValue(raw, c.value)
			if !yield(c) {
				return
			}
			i = skipSpace(raw, c.end)
			if raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
	}
}

func skipSpace(raw string, i int) int {
	for i < len(raw) && strings.IndexByte(" \t\r\n", raw[i]) >= 0 {
		i++
	}
	return i
}

func skipString(raw string, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func skipValue(raw string, i int) int {
	depth := 0
	for {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			i++
		default:
			i = skipLiteral(raw, i)
		}
		if depth == 0 {
			return i
		}
	}
}

func skipLiteral(raw string, i int) int {
	for i < len(raw) && strings.IndexByte(",:]} \t\r\n", raw[i]) < 0 {
		i++
	}
	return i
}

// isJSON tells a JSON object or array from other texts. A lone number or word
// is read as the text it looks like.
func isJSON(text string) bool {
	i := skipSpace(text, 0)
	return i < len(text) && (text[i] == '{' || text[i] == '[') && json.Valid([]byte(text))
}

func unquote(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return strings.ToValidUTF8(raw[1:len(raw)-1], "\uFFFD")
	}
	var text string
	_ = json.Unmarshal([]byte(raw), &text) // raw is a valid JSON string
	return text
}

func quote(text string) string { return string(rawjson.AppendString(nil, text)) }

// member is the last member of an object with that key: the one that counts for
// most parsers.
func member(raw string, object child, key string) (found child, ok bool) {
	if raw[object.value] != '{' {
		return child{}, false
	}
	for m := range children(raw, object.value) {
		if unquote(m.key) == key {
			found, ok = m, true
		}
	}
	return found, ok
}

// edit replaces a part of a text.
type edit struct {
	start, end int
	with       string
}

// without is the edit that removes one of the children of an object or array.
func without(list []child, i int) edit {
	switch {
	case i > 0:
		return edit{start: list[i-1].end, end: list[i].end}
	case len(list) > 1:
		return edit{start: list[0].start, end: list[1].start}
	}
	return edit{start: list[0].start, end: list[0].end}
}

// splice makes edits that do not overlap.
func splice(raw string, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(out, raw[at:e.start]...)
		out = append(out, e.with...)
		at = e.end
	}
	return append(out, raw[at:]...)
}

// compact is a JSON text without white space.
func compact(raw string) string { return string(rawjson.Compact([]byte(raw))) }
