package results

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"mcpx/internal/rawjson"
)

// shape describes all values at one place of a result: in the same field of all rows.
type shape struct {
	kind   byte   // of the objects or arrays here, '{' or '['; 0: there are none
	arrays string // "[312]" for each array around the objects
	fields []*field

	count  int            // values
	length int            // of the last array
	inner  *shape         // of the elements of arrays
	next   int            // the number of the field that probably comes next
	number map[string]int // of each field; nil while there are few
}

// fewFields is how many fields are found without a map.
const fewFields = 16

type field struct {
	key string
	raw []byte // the key as written
	shape
}

// shapeOf merges all rows of a JSON text into one shape. It reads the text once, and no
// deeper than an outline shows. Time and memory do not depend on the number of different
// keys: those beyond the bounds are left out.
func shapeOf(ctx context.Context, data []byte) (*shape, error) {
	m := merger{root: &shape{}}
	err := rawjson.Walk(ctx, data, m.enter, m.leave)
	m.root.finish()
	return m.root, err
}

// merger merges values into shapes while a text is read.
type merger struct {
	root   *shape
	path   []level // the objects and arrays around the next value
	fields [maxDepth + 1]int
}

// level is an object or array that is being read.
type level struct {
	*shape
	keys   int // number of keys that lead to it
	arrays int // number of arrays directly around its values
}

// enter merges a value. It reports whether to read what is in it.
func (m *merger) enter(depth int, key []byte, kind byte) bool {
	in := level{shape: m.root}
	if depth > 0 {
		parent := m.path[depth-1]
		in = level{parent.inner, parent.keys, parent.arrays + 1}
		if key != nil {
			in = level{m.field(parent, key), parent.keys + 1, 0}
		}
	}
	if in.shape == nil {
		return false
	}
	if in.count++; in.kind == 0 && (kind == '{' || kind == '[') {
		in.kind = kind
	}
	switch {
	case kind != in.kind:
		return false
	case kind == '[' && in.arrays == maxArrays, kind == '{' && in.keys == maxDepth:
		return false
	case kind == '[' && in.inner == nil:
		in.inner = &shape{}
	}
	in.next = 0
	m.path = append(m.path[:depth], in)
	return true
}

// leave records the length of an array.
func (m *merger) leave(depth, count int) { m.path[depth].length = count }

// field returns the shape of a member; nil if there are too many. Rows mostly have the same
// keys in the same order.
func (m *merger) field(object level, key []byte) *shape {
	s := object.shape
	if s.next < len(s.fields) && bytes.Equal(s.fields[s.next].raw, key) {
		s.next++
		return &s.fields[s.next-1].shape
	}
	name, _ := rawjson.View(key)
	i, ok := s.find(name)
	if !ok {
		if len(s.fields) == maxKeys || m.fields[object.keys] == maxFields {
			return nil
		}
		m.fields[object.keys]++
		s.add(&field{key: name, raw: key})
	}
	s.next = i + 1
	return &s.fields[i].shape
}

// find returns the number of a field, or the number that it would get.
func (s *shape) find(key string) (i int, ok bool) {
	if s.number != nil {
		i, ok = s.number[key]
	} else {
		i = slices.IndexFunc(s.fields, func(f *field) bool { return f.key == key })
		ok = i >= 0
	}
	if !ok {
		i = len(s.fields)
	}
	return i, ok
}

// add adds a field.
func (s *shape) add(f *field) {
	s.fields = append(s.fields, f)
	if len(s.fields) <= fewFields {
		return
	}
	if s.number == nil {
		s.number = map[string]int{}
		for i, f := range s.fields {
			s.number[f.key] = i
		}
	}
	s.number[f.key] = len(s.fields) - 1
}

// finish moves the shape of the elements of an array to the shape around it.
func (s *shape) finish() {
	for _, f := range s.fields {
		f.finish()
	}
	if s.kind != '[' {
		return
	}
	s.arrays = "[]" // the lengths differ
	if s.count == 1 {
		s.arrays = fmt.Sprintf("[%d]", s.length)
	}
	if s.inner == nil {
		return
	}
	s.inner.finish()
	s.arrays += s.inner.arrays
	s.kind, s.fields = s.inner.kind, s.inner.fields
}
