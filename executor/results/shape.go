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

// Remember notes the last result that a client got from a tool, for Shape. Results that
// report an error do not count, nor do short texts that are not JSON, nor long results if
// results are not kept: nothing else reads these, and reading them takes time
// (BenchmarkStdioSmall, BenchmarkStdioLarge). It fails if the context ends.
func (r *Result) Remember(t Tool) error {
	isLong := len(r.raw) > shortResult
	if isLong && r.store.Tokens <= 0 || !isLong && !mayBeJSON(r.raw) || r.isError() {
		return nil
	}
	raw, shape := r.raw, ""
	if isLong {
		raw = nil
		if r.parts != nil && r.parts.data != "" {
			s, err := r.shapeOfData()
			if err != nil {
				return err
			}
			shape = s.short()
		}
	}
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	last := r.store.client(r.client).last(t)
	last.result = append(last.result[:0], raw...)
	last.shape = shape
	return nil
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
func (s *Store) Shape(client string, t Tool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.clients[client]
	if !ok || c.shapes[t] == nil {
		return ""
	}
	last := c.shapes[t]
	if len(last.result) > 0 {
		return shapeOfShort(last.result)
	}
	return last.shape
}

// shapeOfShort returns the shape of a short result, "" if it is not JSON.
func shapeOfShort(raw []byte) string {
	ctx := context.Background() // it takes no time
	p, _ := readParts(ctx, raw)
	if p == nil || p.data == "" {
		return ""
	}
	s, _ := shapeOf(ctx, rawjson.Bytes(p.data))
	return s.short()
}
