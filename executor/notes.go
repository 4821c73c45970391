package executor

import (
	"bytes"
	"slices"

	"mcpx/executor/validate"
	"mcpx/internal/rawjson"
)

// noteLines returns the lines that a result has about its call's arguments.
func noteLines(notes []validate.Problem) (lines []string) {
	for _, n := range notes[:min(len(notes), maxProblems)] {
		lines = append(lines, "note: "+n.String())
	}
	return lines
}

// withNote returns a tool's result with one more text block at the end of its content.
// All other bytes stay as they are. A result that is not an object, or whose content is
// not an array, is returned unchanged.
func withNote(result []byte, note string) []byte {
	object := bytes.TrimSpace(result)
	if note == "" || rawjson.Kind(object) != '{' {
		return result
	}
	block := append(rawjson.AppendString([]byte(`{"type":"text","text":`), note), '}')
	var content rawjson.Child
	for member := range rawjson.Children(object, 0) {
		if key, _ := rawjson.View(member.Key); key == "content" {
			content = member
		}
	}
	switch {
	case content.Key == nil:
		return insertLast(object, len(object)-1, slices.Concat([]byte(`"content":[`), block, []byte("]")))
	case object[content.Value] == '[':
		return insertLast(object, content.End-1, block)
	}
	return result
}

// insertLast inserts the last member or element of an object or array that ends at
// closing.
func insertLast(text []byte, closing int, item []byte) []byte {
	comma := []byte(",")
	if before := bytes.TrimRight(text[:closing], " \t\r\n"); bytes.ContainsAny(before[len(before)-1:], "[{") {
		comma = nil
	}
	return slices.Concat(text[:closing], comma, item, text[closing:])
}
