package results

import (
	"bytes"
	"context"

	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

// Limits of the last results that Remember stores for a client.
const (
	maxShapes   = 16  // tools
	shortResult = 256 // bytes; the shape of a longer result is found at once
	maxShape    = 150 // tokens
)

// Tool names a tool. Its strings must not be part of a request, which would stay in
// memory.
type Tool struct{ Server, Name string }

// lastResult is the last result of one tool, or its shape.
type lastResult struct {
	result []byte // if it is short, so that an ordinary call only copies it
	shape  string
}

// RememberShort is Remember for a result that needs no other work: a short result, or any
// result if results are not kept. It returns false for all others. It is fast, because it only
// copies the bytes of a short result (BenchmarkStdioSmall, BenchmarkStdioLarge).
func (t *Table) RememberShort(client string, tool Tool, result []byte) (ok bool) {
	if len(result) > shortResult || !t.IsSmall(result) {
		return t.Tokens <= 0
	}
	if mayBeJSON(result) && rawjson.Kind(rawjson.Get(result, "isError")) != 't' {
		t.remember(client, tool, lastResult{result: result})
	}
	return true
}

// Remember records the last result that a client got from a tool, for Shape. Results that
// report an error do not count. It fails if the context ends.
func (r *Result) Remember(tool Tool) error {
	last := lastResult{}
	switch p := r.parts; {
	case p != nil && p.isError:
		return nil
	case p != nil && p.data != "":
		s, err := r.shapeOfData()
		if err != nil {
			return err
		}
		last.shape = s.short()
	}
	r.table.remember(r.client, tool, last)
	return nil
}

// remember copies the last result of a tool.
func (t *Table) remember(client string, tool Tool, l lastResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.client(client).last(tool)
	last.result = append(last.result[:0], l.result...)
	last.shape = l.shape
}

// shapeOfData returns the shape of the JSON in the result.
func (r *Result) shapeOfData() (*shape, error) {
	if r.shape == nil {
		s, err := shapeOf(r.ctx, rawjson.Bytes(r.parts.data))
		if err != nil {
			return nil, err
		}
		r.shape = s
	}
	return r.shape, nil
}

// short returns the outline that Shape returns.
func (s *shape) short() string { return tokens.Shorten(s.outline(4*maxShape), maxShape) }

// mayBeJSON reports, at a glance, whether a result may have JSON: structuredContent, or a
// text that begins with an object or an array.
func mayBeJSON(result []byte) bool {
	return bytes.Contains(result, []byte(`"structuredContent"`)) || bytes.Contains(result, []byte(`"{`)) || bytes.Contains(result, []byte(`"[`))
}

// last returns the place for the last result of a tool. If there are too many, it forgets
// any other tool.
func (c *client) last(t Tool) *lastResult {
	last := c.shapes[t]
	if last != nil {
		return last
	}
	for other := range c.shapes {
		if len(c.shapes) < maxShapes {
			break
		}
		delete(c.shapes, other)
	}
	last = &lastResult{}
	c.shapes[t] = last
	return last
}

// Shape returns the shape of the last result that a client got from a tool, "" if there
// is none or if it is not JSON.
func (t *Table) Shape(client string, tool Tool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.clients[client]
	if !ok || c.shapes[tool] == nil {
		return ""
	}
	last := c.shapes[tool]
	if len(last.result) > 0 {
		return shapeOfShort(last.result)
	}
	return last.shape
}

// shapeOfShort returns the shape of a short result, "" if it is not JSON.
func shapeOfShort(raw []byte) string {
	ctx := context.Background() // a short result needs no cancellation
	p, _ := readParts(ctx, raw)
	if p == nil || p.data == "" {
		return ""
	}
	s, _ := shapeOf(ctx, rawjson.Bytes(p.data))
	return s.short()
}
