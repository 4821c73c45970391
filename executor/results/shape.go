package results

import (
	"strings"

	"mcpx/internal/rawjson"
)

// Limits of what is remembered of the last results of a client.
const (
	maxShapes   = 32  // tools
	shortResult = 256 // bytes; the shape of a longer result is found at once
	maxShape    = 400 // bytes
)

// lastResult is the last result of one tool, or its shape.
type lastResult struct {
	result string // if it is short, so that an ordinary call only copies it
	shape  string
}

// Remember notes the last result that a client got from a tool, for Shape. Results that
// report an error do not count.
func (s *Store) Remember(client, tool string, result []byte) {
	if rawjson.Kind(rawjson.Get(result, "isError")) == 't' {
		return
	}
	var last lastResult
	if len(result) <= shortResult {
		last.result = string(result)
	} else {
		last.shape = shapeOfResult(result)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.client(client)
	if _, ok := c.shapes[tool]; !ok && len(c.shapes) >= maxShapes {
		for other := range c.shapes { // any
			delete(c.shapes, other)
			break
		}
	}
	c.shapes[strings.Clone(tool)] = last
}

// Shape returns the shape of the last result that a client got from a tool, "" if there
// is none or if it is not JSON.
func (s *Store) Shape(client, tool string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.clients[client]
	if !ok {
		return ""
	}
	last := c.shapes[tool]
	if last.result != "" {
		return shapeOfResult([]byte(last.result))
	}
	return last.shape
}

func shapeOfResult(result []byte) string {
	p, ok := readParts(result)
	if !ok || p.data == "" {
		return ""
	}
	return outline(kept{data: p.data}, maxShape)
}
