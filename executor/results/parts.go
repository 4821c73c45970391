package results

import (
	"bytes"
	"slices"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

// Result is a result of a call, as an upstream sent it. Its parts are read once, when they
// are first needed. It must not be used concurrently.
type Result struct {
	raw    []byte
	isRead bool
	found  *parts
}

// NewResult returns a Result, which keeps the bytes.
func NewResult(raw []byte) *Result { return &Result{raw: raw} }

// parts returns the parts of the result, nil if it is not a result of MCP.
func (r *Result) parts() *parts {
	if !r.isRead {
		r.found, r.isRead = readParts(r.raw), true
	}
	return r.found
}

// isError reports whether the result reports an error.
func (r *Result) isError() bool { return rawjson.Kind(rawjson.Get(r.raw, "isError")) == 't' }

// parts are the parts of a result that a model reads as text.
type parts struct {
	raw        []byte // the result
	members    []rawjson.Child
	items      []rawjson.Child // of content
	texts      []piece
	structured int  // the number of the member structuredContent; -1: there is none
	repeats    bool // a text has the same JSON as structuredContent
	data       string
}

// piece is a text of the result: a text item, or an embedded resource.
type piece struct {
	text  string
	value rawjson.Child // the JSON string
	item  int           // the number of its item
}

// separator is between the texts of a kept result.
const separator = "\n"

// readParts reads a result. It returns nil if it is not a result of MCP.
func readParts(result []byte) *parts {
	if rawjson.Kind(result) != '{' || rawjson.Check(result) != nil {
		return nil
	}
	raw := bytes.TrimSpace(withoutDuplicates(result))
	p := &parts{raw: raw, members: slices.Collect(rawjson.Children(raw, 0)), structured: -1}
	for i, m := range p.members {
		switch keyOf(m) {
		case "content":
			if raw[m.Value] != '[' {
				return nil
			}
			p.items = slices.Collect(rawjson.Children(raw, m.Value))
		case "structuredContent":
			p.structured = i
		}
	}
	for i, item := range p.items {
		if t, ok := pieceOf(raw, item); ok {
			t.item = i
			p.texts = append(p.texts, t)
		}
	}
	p.findData()
	return p
}

// withoutDuplicates returns a result in which the members that readParts reads occur once,
// with their last values, as any decoder would read them.
func withoutDuplicates(result []byte) []byte {
	count := map[string]int{}
	for key := range rawjson.Members(result) {
		count[key]++
	}
	for _, key := range []string{"content", "structuredContent"} {
		if count[key] > 1 {
			result = rawjson.With(result, key, rawjson.Get(result, key))
		}
	}
	return result
}

// pieceOf finds the text of a text item or of an embedded resource.
func pieceOf(raw []byte, item rawjson.Child) (p piece, ok bool) {
	kind, _ := member(raw, item, "type")
	switch string(raw[kind.Value:kind.End]) {
	case `"text"`:
		p.value, ok = member(raw, item, "text")
	case `"resource"`:
		var resource rawjson.Child
		if resource, ok = member(raw, item, "resource"); ok {
			p.value, ok = member(raw, resource, "text")
		}
	}
	if !ok {
		return piece{}, false
	}
	p.text, ok = rawjson.View(raw[p.value.Value:p.value.End])
	return p, ok
}

// findData finds the JSON that paths, select and references read: structuredContent, or
// else the first text that is JSON.
func (p *parts) findData() {
	if p.structured >= 0 {
		m := p.members[p.structured]
		p.data = strings.ToValidUTF8(string(p.raw[m.Value:m.End]), "\uFFFD")
	}
	compacted := ""
	for _, t := range p.texts {
		switch {
		case !isJSON(t.text):
			continue
		case p.structured < 0:
			p.data = t.text
			return
		case compacted == "":
			compacted = compact(p.data)
		}
		if compact(t.text) == compacted {
			p.repeats = true
			p.data = t.text
			return
		}
	}
}

// all returns the texts, and structuredContent unless a text repeats it.
func (p *parts) all() (texts []string) {
	for _, t := range p.texts {
		texts = append(texts, t.text)
	}
	if p.structured >= 0 && !p.repeats {
		texts = append(texts, p.data)
	}
	return texts
}

// Tokens returns the number of tokens that a model reads of the result's texts. Images and
// other content do not count.
func (r *Result) Tokens() int { return tokens.Count(r.Text()) }

// Text returns the result's texts.
func (r *Result) Text() string {
	if p := r.parts(); p != nil {
		return strings.Join(p.all(), separator)
	}
	return string(r.raw)
}

// kept returns the texts and the JSON to keep, in memory of their own.
func (p *parts) kept() kept {
	text := strings.Clone(strings.Join(p.all(), separator))
	data := strings.Index(text, p.data)
	return kept{text, text[data : data+len(p.data)]}
}

// removeStructured returns the edit that removes structuredContent.
func (p *parts) removeStructured() []rawjson.Edit {
	if p.structured < 0 {
		return nil
	}
	return []rawjson.Edit{without(p.members, p.structured)}
}

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

// contentItem returns a text as an item of content.
func contentItem(text string) []byte {
	return append(rawjson.AppendString([]byte(`{"type":"text","text":`), text), '}')
}

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

// without returns the edit that removes one child of an object or array.
func without(list []rawjson.Child, i int) rawjson.Edit {
	switch {
	case i > 0:
		return rawjson.Edit{Start: list[i-1].End, End: list[i].End}
	case len(list) > 1:
		return rawjson.Edit{Start: list[0].Start, End: list[1].Start}
	}
	return rawjson.Edit{Start: list[0].Start, End: list[0].End}
}

// compact returns a JSON text without white space.
func compact(raw string) string { return string(rawjson.Compact([]byte(raw))) }
