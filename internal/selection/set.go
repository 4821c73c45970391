package selection

import (
	"fmt"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// set has the values of a condition with "in".
type set struct {
	texts   map[string]bool // true: the text is also a number, if it is one
	numbers map[string]bool // in their canonical form
	hasNull bool
}

func newSet(values []value) *set {
	s := &set{texts: map[string]bool{}, numbers: map[string]bool{}}
	for _, v := range values {
		s.add(v)
	}
	return s
}

func (s *set) add(v value) {
	if v.isNull() {
		s.hasNull = true
		return
	}
	s.texts[v.text] = true
	if !v.isText {
		if number, ok := canonical(v.text); ok {
			s.numbers[number] = true
		}
	}
}

// has reports whether a value of a row equals one of the values.
func (s *set) has(n rawjson.Node) bool {
	if rawjson.IsNull(n.Raw()) {
		return s.hasNull
	}
	text := n.Text()
	if s.texts[text] {
		return true
	}
	if !n.IsNumber() && n.Kind() != '"' {
		return false
	}
	number, ok := canonical(text)
	return ok && s.numbers[number]
}

// References returns the references of the query's conditions.
func (q *Query) References() (all []*SetReference) {
	for c := range leaves(q.where) {
		if c.reference != nil {
			all = append(all, c.reference)
		}
	}
	return all
}

// maxSet bounds the values of all references of a query.
const maxSet = 100_000

// Bind returns the query with the values of its references, which are JSON: an array of
// values, or one value. Objects and arrays in an array are no values.
func (q *Query) Bind(values map[*SetReference][]byte) (*Query, error) {
	if len(values) == 0 {
		return q, nil
	}
	left := maxSet
	bound := *q
	bound.where = q.where.mapped(func(c comparison) comparison {
		if c.reference != nil {
			c.set = setOf(values[c.reference], &left)
		}
		return c
	})
	if left < 0 {
		return nil, fmt.Errorf("select: the references have more than %s values; use where or limit in them", plain.Number(maxSet))
	}
	return &bound, nil
}

// setOf returns the set of some values, as long as left is not negative.
func setOf(values []byte, left *int) *set {
	s := newSet(nil)
	if rawjson.Kind(values) != '[' {
		s.addJSON(values)
		return s
	}
	for element := range rawjson.Elements(values) {
		if *left--; *left < 0 {
			break
		}
		s.addJSON(element)
	}
	return s
}

// addJSON adds a scalar value.
func (s *set) addJSON(raw []byte) {
	switch rawjson.Kind(raw) {
	case '{', '[':
	case '"':
		text, _ := rawjson.String(raw)
		s.add(value{text: text, isText: text == "null"})
	default:
		s.add(value{text: string(raw)})
	}
}
