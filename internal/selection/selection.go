// Package selection answers select: it picks fields and rows of a JSON value, as in
// "number, title, user.login where state = open and comments > 5 limit 20". Selected
// values keep their bytes.
package selection

import (
	"slices"
	"strings"

	"mcpx/internal/nearest"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// Query is a parsed select. It is immutable.
type Query struct {
	fields  []Path // returned for each row
	isAll   bool   // return all fields
	isCount bool   // return the number of rows
	where   []condition
	limit   int // at most that many rows; -1: all

	Pattern string // the RE2 pattern of a select like /pattern/, which has nothing else
}

// Selection is the result of a Query.
type Selection struct {
	query   Query          // with paths that begin at the rows
	all     []rawjson.Node // all rows of the value
	isOne   bool           // the value is an object, which is the only row
	matched int            // rows that meet the conditions
	rows    []rawjson.Node // the matching rows, up to the limit
	unknown []Path
	known   []string // fields that the rows have
}

// Apply selects from a value.
func (q *Query) Apply(value rawjson.Node) *Selection {
	s := q.rowsOf(value)
	for _, row := range s.all {
		if !meetsAll(row, s.query.where) {
			continue
		}
		if s.matched++; q.limit < 0 || len(s.rows) < q.limit {
			s.rows = append(s.rows, row)
		}
	}
	s.findUnknown()
	return s
}

// rowsOf returns a Selection with all rows of a value: the elements of an array, the
// elements of the array that all fields begin with, the object itself if it has a field
// that the query names, or else the elements of the only array of objects in it.
func (q *Query) rowsOf(value rawjson.Node) *Selection {
	if value.Kind() == '[' {
		return q.in(value, Path{every})
	}
	if prefix := q.commonArray(); prefix != nil {
		if found, _, _ := prefix[:len(prefix)-1].find(value); len(found) == 1 && found[0].Kind() == '[' {
			return q.in(found[0], prefix)
		}
	}
	if q.isAboutRows() {
		if array := onlyArray(value, q.paths()); !array.IsZero() {
			return q.in(array, nil)
		}
	}
	return &Selection{query: *q, all: []rawjson.Node{value}, isOne: true}
}

// in returns a Selection with the elements of an array. Paths lose the prefix that leads
// there.
func (q *Query) in(array rawjson.Node, prefix Path) *Selection {
	s := &Selection{query: *q, all: array.Elements()}
	s.query.fields, s.query.where = nil, nil
	for _, f := range q.fields {
		s.query.fields = append(s.query.fields, f.without(prefix))
	}
	for _, c := range q.where {
		c.path = c.path.without(prefix)
		s.query.where = append(s.query.where, c)
	}
	return s
}

// commonArray returns the path of an array, with its [], that all fields begin with.
func (q *Query) commonArray() Path {
	if len(q.fields) == 0 {
		return nil
	}
	end := slices.Index(q.fields[0], every)
	if end <= 0 {
		return nil
	}
	prefix := q.fields[0][:end+1]
	for _, f := range q.fields {
		if f.without(prefix) == nil || len(f.without(prefix)) == len(f) {
			return nil
		}
	}
	return prefix
}

// isAboutRows reports whether a query of an object may mean the rows of an array in it.
// Only "*" alone means the object.
func (q *Query) isAboutRows() bool {
	return len(q.fields) > 0 || len(q.where) > 0 || q.isCount || q.limit >= 0
}

// paths returns the paths of the fields and of the conditions.
func (q *Query) paths() []Path {
	paths := slices.Clone(q.fields)
	for _, c := range q.where {
		paths = append(paths, c.path)
	}
	return paths
}

// onlyArray returns the only array of objects in an object, or in the only object in it.
// It returns the zero Node if there is none, or if one of the paths begins in the object.
func onlyArray(object rawjson.Node, paths []Path) rawjson.Node {
	for object.Kind() == '{' {
		var arrays, empty, objects []rawjson.Node
		for key, value := range object.Members() {
			switch {
			case slices.ContainsFunc(paths, func(p Path) bool { return p[0].name == key }):
				return rawjson.Node{}
			case value.Kind() == '{':
				objects = append(objects, value)
			case value.Kind() == '[' && value.Len() == 0:
				empty = append(empty, value)
			case value.Kind() == '[' && value.At(0).Kind() == '{':
				arrays = append(arrays, value)
			}
		}
		switch {
		case len(arrays) == 1:
			return arrays[0]
		case len(arrays) == 0 && len(empty) == 1:
			return empty[0]
		case len(arrays) > 0 || len(objects) != 1:
			return rawjson.Node{}
		}
		object = objects[0]
	}
	return rawjson.Node{}
}

// findUnknown finds the paths that lead nowhere in all rows, and the fields that there
// are instead.
func (s *Selection) findUnknown() {
	if len(s.all) == 0 {
		return
	}
	for _, p := range s.query.paths() {
		leads := func(row rawjson.Node) bool { _, _, known := p.find(row); return known }
		if !slices.ContainsFunc(s.all, leads) && !slices.ContainsFunc(s.unknown, p.equal) {
			s.unknown = append(s.unknown, p)
		}
	}
	if len(s.unknown) > 0 {
		s.known = fieldsOf(s.all[:min(len(s.all), sampledRows)], maxNames+1)
		s.query.fields = slices.DeleteFunc(slices.Clone(s.query.fields), func(p Path) bool { return slices.ContainsFunc(s.unknown, p.equal) })
	}
}

// Limits of the fields that a note names.
const (
	sampledRows = 20
	maxNames    = 30
)

// fieldsOf returns the names of the fields that rows have, up to a limit.
func fieldsOf(rows []rawjson.Node, limit int) (names []string) {
	seen := map[string]bool{}
	for _, row := range rows {
		for key := range row.Members() {
			if len(names) == limit {
				return names
			}
			if !seen[key] {
				seen[key] = true
				names = append(names, key)
			}
		}
	}
	return names
}

// IsKnown reports whether every path of the query leads to a value in some row.
func (s *Selection) IsKnown() bool { return len(s.unknown) == 0 }

// Note returns a line about fields that no row has, with near matches and the fields
// that exist; "" if there are none.
func (s *Selection) Note() string {
	if len(s.unknown) == 0 {
		return ""
	}
	start := "no row has "
	if s.isOne {
		start = "there is no "
	}
	var lines []string
	for _, p := range s.unknown[:min(len(s.unknown), maxNames)] {
		line := start + quoted(p.String())
		if near := nearest.Word(p.String(), s.known); near != "" {
			line += ", did you mean " + quoted(near) + "?"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ") + "; fields: " + list(s.known)
}

// list returns names on one line, as many as a note may have.
func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	var all []string
	for _, name := range names[:min(len(names), maxNames)] {
		all = append(all, shown(name))
	}
	if len(names) > maxNames {
		all = append(all, "…")
	}
	return strings.Join(all, ", ")
}

// maxName bounds a name in a note, in bytes.
const maxName = 60

func shown(name string) string { return plain.Cut(plain.Line(name), maxName) }

func quoted(name string) string { return `"` + shown(name) + `"` }
