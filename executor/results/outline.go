package results

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// The bounds of an outline.
const (
	maxOutline = 750 // bytes
	maxDepth   = 4   // nested objects
	maxSamples = 20  // elements whose keys are merged
	maxKeys    = 200 // of one object
	maxKey     = 40  // bytes
)

// outline describes a kept result in one line: the keys and lengths of JSON, as in
// "total, items[312]{id, title}", or the lines and headings of other texts. Nested keys
// are left out before the fields of the rows are.
func outline(k kept, limit int) string {
	if k.data == "" {
		return plain.Cut(lines(k.text), limit)
	}
	s := shapeOf([][]byte{[]byte(strings.TrimSpace(k.data))}, 0)
	least := max(s.rowDepth(), 1)
	for depth := maxDepth; ; depth-- {
		text := s.text(depth)
		if inner, ok := strings.CutPrefix(text, "{"); ok && inner != "}" {
			text = strings.TrimSuffix(inner, "}")
		}
		if len(text) <= limit || depth <= least {
			return plain.Cut(text, limit)
		}
	}
}

// rowFields returns the names of the fields that a select of JSON would choose from: those
// of the rows, or else of the object.
func rowFields(data string) []string {
	s := shapeOf([][]byte{[]byte(strings.TrimSpace(data))}, 0)
	for depth := s.rowDepth(); depth > 1; depth-- {
		next := slices.IndexFunc(s.fields, func(f field) bool { return f.shape.rowDepth() == depth-1 })
		s = s.fields[next].shape
	}
	var names []string
	for _, f := range s.fields {
		names = append(names, f.key)
	}
	return names
}

// shape describes sample values from one place.
type shape struct {
	arrays   string // "[312]" for each array around the objects
	isObject bool
	isRows   bool // arrays of objects
	fields   []field
}

type field struct {
	key   string
	shape shape
}

// shapeOf merges samples into one shape. It looks no deeper than an outline shows.
func shapeOf(samples [][]byte, depth int) (s shape) {
	for len(s.arrays) < maxKey {
		first := slices.IndexFunc(samples, func(v []byte) bool { return v[0] == '{' || v[0] == '[' })
		switch {
		case first < 0:
			return s
		case samples[first][0] == '{':
			s.isObject, s.isRows = true, s.arrays != ""
			if depth < maxDepth {
				s.addFields(samples, depth)
			}
			return s
		}
		samples = s.enter(samples)
	}
	return s
}

// enter adds the length of an array, and returns the first elements.
func (s *shape) enter(samples [][]byte) (elements [][]byte) {
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
		s.arrays += fmt.Sprintf("[%d]", length)
	} else {
		s.arrays += "[]" // the lengths differ
	}
	return elements
}

func (s *shape) addFields(samples [][]byte, depth int) {
	var keys []string
	values := map[string][][]byte{}
	for _, sample := range samples {
		if sample[0] != '{' {
			continue
		}
		for c := range rawjson.Children(sample, 0) {
			key := keyOf(c)
			if values[key] == nil {
				keys = append(keys, key)
			}
			values[key] = append(values[key], sample[c.Value:c.End])
			if len(keys) == maxKeys {
				break
			}
		}
	}
	for _, key := range keys {
		s.fields = append(s.fields, field{key, shapeOf(values[key], depth+1)})
	}
}

// rowDepth returns how many levels of keys an outline needs to show the fields of the
// rows: the nearest array of objects. It is 0 if there are no rows.
func (s *shape) rowDepth() (least int) {
	if s.isRows {
		return 1
	}
	for i := range s.fields {
		if d := s.fields[i].shape.rowDepth(); d > 0 && (least == 0 || d+1 < least) {
			least = d + 1
		}
	}
	return least
}

// text writes a shape with so many levels of keys.
func (s *shape) text(depth int) string {
	switch {
	case !s.isObject:
		return s.arrays
	case depth == 0:
		return s.arrays + "{…}"
	}
	var keys []string
	for _, f := range s.fields {
		keys = append(keys, label(f.key)+f.shape.text(depth-1))
	}
	return s.arrays + "{" + strings.Join(keys, ", ") + "}"
}

var plainKey = regexp.MustCompile(`^[\p{L}\p{N}_$@.-]+$`)

// label returns a key that cannot be mistaken for the outline's own signs.
func label(key string) string {
	key = key[:plain.RuneStart(key, 2*maxKey)] // plain.Cut shortens the rest
	if !plainKey.MatchString(key) {
		key = strconv.Quote(key)
	}
	return plain.Cut(key, maxKey)
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
	shape := plain.Count(count, "line")
	if len(headings) > 0 {
		shape += ": " + strings.Join(headings, ", ")
	}
	return shape
}
