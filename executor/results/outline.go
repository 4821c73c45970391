package results

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpx/internal/rawjson"
)

// The bounds of an outline.
const (
	maxOutline = 300 // bytes
	maxDepth   = 4   // of objects and arrays
	maxSamples = 20  // elements whose keys are merged
	maxKey     = 40  // bytes
)

// outline describes a text in one line: the keys and lengths of JSON, as in "total,
// items[312]{id, title}", or the lines and headings of other texts.
func outline(text string) string {
	shape := lines(text)
	if isJSON(text) {
		var b strings.Builder
		describe(&b, [][]byte{[]byte(strings.TrimSpace(text))}, 0)
		shape = b.String()
		if inner, ok := strings.CutPrefix(shape, "{"); ok && inner != "}" {
			shape = strings.TrimSuffix(inner, "}")
		}
	}
	return shorten(shape, maxOutline)
}

// describe writes the shape of sample values from one place; nothing for values
// without parts.
func describe(b *strings.Builder, samples [][]byte, depth int) {
	for _, sample := range samples {
		switch sample[0] {
		case '{':
			describeObjects(b, samples, depth)
			return
		case '[':
			describeArrays(b, samples, depth)
			return
		}
	}
}

func describeArrays(b *strings.Builder, samples [][]byte, depth int) {
	var elements [][]byte
	length := 0
	for _, sample := range samples {
		length = 0
		if sample[0] != '[' {
			continue
		}
		for c := range rawjson.Children(sample, 0) {
			if length++; len(elements) < maxSamples {
				elements = append(elements, sample[c.Value:c.End])
			}
		}
	}
	if len(samples) == 1 {
		fmt.Fprintf(b, "[%d]", length)
	} else {
		b.WriteString("[]") // the lengths differ
	}
	if depth < maxDepth {
		describe(b, elements, depth+1)
	}
}

func describeObjects(b *strings.Builder, samples [][]byte, depth int) {
	if depth == maxDepth {
		b.WriteString("{…}")
		return
	}
	var keys []string
	values := map[string][][]byte{}
	for _, sample := range samples {
		if sample[0] != '{' {
			continue
		}
		for c := range rawjson.Children(sample, 0) {
			key := label(keyOf(c))
			if values[key] == nil {
				keys = append(keys, key)
			}
			values[key] = append(values[key], sample[c.Value:c.End])
		}
	}
	b.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > maxOutline { // more would be cut off
			b.WriteString("…")
			break
		}
		b.WriteString(key)
		describe(b, values[key], depth+1)
	}
	b.WriteByte('}')
}

var plainKey = regexp.MustCompile(`^[\p{L}\p{N}_$@.-]+$`)

// label returns a key that cannot be mistaken for the outline's own signs.
func label(key string) string {
	if !plainKey.MatchString(key) {
		key = strconv.Quote(key)
	}
	return shorten(key, maxKey)
}

var heading = regexp.MustCompile(`^#{1,6} `)

// lines describes a text that is not JSON.
func lines(text string) string {
	var headings []string
	count := 0
	for line := range strings.Lines(text) {
		count++
		if heading.MatchString(line) && len(headings) < maxSamples {
			headings = append(headings, strings.TrimSpace(line))
		}
	}
	shape := grouped(count) + " lines"
	if count == 1 {
		shape = "1 line"
	}
	if len(headings) > 0 {
		shape += ": " + strings.Join(headings, ", ")
	}
	return shape
}

// shorten cuts a text to a number of bytes at a rune, and marks the cut.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:runeStart(text, limit-len("…"))] + "…"
}

// runeStart moves an offset back to where a rune starts.
func runeStart(text string, i int) int {
	for i > 0 && i < len(text) && !utf8.RuneStart(text[i]) {
		i--
	}
	return i
}
