package results

import (
	"slices"
	"strings"

	"mcpx/internal/rawjson"
)

// isJSON reports whether a text is a JSON object or array. A lone number or word
// counts as plain text.
func isJSON(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '{' || text[0] == '[') && rawjson.Check([]byte(text)) == nil
}

// keyOf returns the decoded key of a member.
func keyOf(member rawjson.Child) string {
	key, _ := rawjson.String(member.Key)
	return key
}

func quote(text string) string { return string(rawjson.AppendString(nil, text)) }

// member returns the last member of an object with that key: most parsers use that
// one.
func member(raw []byte, object rawjson.Child, key string) (found rawjson.Child, ok bool) {
	for m := range rawjson.Children(raw, object.Value) {
		if m.Key != nil && keyOf(m) == key {
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

// without returns the edit that removes one child of an object or array.
func without(list []rawjson.Child, i int) edit {
	switch {
	case i > 0:
		return edit{start: list[i-1].End, end: list[i].End}
	case len(list) > 1:
		return edit{start: list[0].Start, end: list[1].Start}
	}
	return edit{start: list[0].Start, end: list[0].End}
}

// splice applies edits that do not overlap.
func splice(raw []byte, edits []edit) []byte {
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

// compact returns a JSON text without white space.
func compact(raw string) string { return string(rawjson.Compact([]byte(raw))) }
