package results

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
	"mcpx/internal/tokens"
	"mcpx/internal/work"
)

// Result is the result of a call, from the upstream, while it is prepared for the client. It
// must not be used concurrently.
type Result struct {
	reading
	table  *Table
	client string
	raw    []byte
	query  *selection.Query // nil: nothing is selected
	parts  *parts           // nil if raw is not a result of MCP
	shape  *shape           // nil until it is needed
}

// Open reads a result for a client. q selects a part of it, and may be nil. Unless the result
// is small, Open waits until there is room for the work. It fails if the context ends. The
// caller must Close the result.
func (t *Table) Open(ctx context.Context, client string, raw []byte, q *selection.Query) (*Result, error) {
	r := &Result{reading: reading{ctx: ctx}, table: t, client: client, raw: raw, query: q}
	var err error
	if q != nil || len(raw) > leastKept || !t.IsSmall(raw) {
		if r.lease, err = t.Work.Acquire(ctx, r.piece()); err != nil {
			return nil, err
		}
	}
	if r.parts, err = readParts(ctx, raw); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// piece returns the memory that the work on the result needs.
func (r *Result) piece() work.Piece {
	p := work.Piece{Client: r.client, Bytes: resultWeight * len(r.raw)}
	if r.query != nil {
		p.Bytes += rawjson.TreeBytes(r.raw) + outputBytes + r.query.Memory(len(r.raw))
	}
	return p
}

// Close ends the work on the result.
func (r *Result) Close() {
	if r.lease != nil {
		r.lease.Release()
	}
}

// parts are the parts of a result that a model reads as text.
type parts struct {
	raw        []byte // the result
	members    []rawjson.Child
	items      []rawjson.Child // of content
	texts      []piece
	structured int  // the number of the member structuredContent; -1: there is none
	repeats    bool // a text has the same JSON as structuredContent
	isError    bool
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
func readParts(ctx context.Context, result []byte) (*parts, error) {
	if rawjson.Kind(result) != '{' || rawjson.CheckContext(ctx, result) != nil {
		return nil, canceled(ctx)
	}
	raw := bytes.TrimSpace(result)
	p := &parts{raw: raw, members: slices.Collect(rawjson.Children(raw, 0)), structured: -1}
	if p.isDouble("content") || p.isDouble("structuredContent") {
		p.raw = withoutDuplicates(raw)
		p.members = slices.Collect(rawjson.Children(p.raw, 0))
	}
	for i, m := range p.members {
		switch keyOf(m) {
		case "content":
			if p.raw[m.Value] != '[' {
				return nil, canceled(ctx)
			}
			p.items = slices.Collect(rawjson.Children(p.raw, m.Value))
		case "structuredContent":
			p.structured = i
		case "isError":
			p.isError = p.raw[m.Value] == 't'
		}
	}
	for i, item := range p.items {
		if ctx.Err() != nil {
			break
		}
		if t, ok := pieceOf(p.raw, item); ok {
			t.item = i
			p.texts = append(p.texts, t)
		}
	}
	p.findData(ctx)
	return p, canceled(ctx)
}

// canceled returns why a call was canceled, nil if it was not.
func canceled(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// isDouble reports whether a member occurs twice.
func (p *parts) isDouble(key string) bool {
	count := 0
	for _, m := range p.members {
		if keyOf(m) == key {
			count++
		}
	}
	return count > 1
}

// withoutDuplicates returns a result in which the members that readParts reads occur once,
// with their last values, as any decoder would read them.
func withoutDuplicates(result []byte) []byte {
	for _, key := range []string{"content", "structuredContent"} {
		if value := rawjson.Get(result, key); value != nil {
			result = rawjson.With(result, key, value)
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
func (p *parts) findData(ctx context.Context) {
	if p.structured >= 0 {
		m := p.members[p.structured]
		p.data = strings.ToValidUTF8(rawjson.Text(p.raw[m.Value:m.End]), "\uFFFD")
	}
	for _, t := range p.texts {
		switch {
		case !isJSON(ctx, t.text):
			continue
		case p.structured < 0:
			p.data = t.text
			return
		case rawjson.EqualCompact(rawjson.Bytes(t.text), rawjson.Bytes(p.data)):
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
	if r.parts == nil {
		return string(r.raw)
	}
	return strings.Join(r.parts.all(), separator)
}

// kept returns the texts and the JSON to keep, in memory of their own.
func (p *parts) kept() kept {
	all := p.all()
	text := strings.Join(all, separator)
	if len(all) == 1 {
		text = strings.Clone(text)
	}
	data := strings.Index(text, p.data)
	return newKept(text, text[data:data+len(p.data)])
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
func isJSON(ctx context.Context, text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return text != "" && (text[0] == '{' || text[0] == '[') && rawjson.CheckContext(ctx, rawjson.Bytes(text)) == nil
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
