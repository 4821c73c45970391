// Package selection answers select: it picks fields and rows of a JSON value, as in
// "number, title, user.login where state = open and comments > 5 limit 20". Selected
// values keep their bytes.
package selection

import (
	"context"
	"iter"
	"slices"
	"strings"

	"mcpx/internal/nearest"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/work"
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

// Selection is the result of a Query. It does not keep the rows, but finds them again when they
// are needed.
type Selection struct {
	*work.Watch
	query   Query                  // with paths that begin at the rows
	all     iter.Seq[rawjson.Node] // all rows of the value
	total   int                    // their number
	isOne   bool                   // the value is an object, which is the only row
	matched int                    // rows that meet the conditions
	unknown []Path
	known   []string // fields that the rows have
}

// Apply selects from a value. It fails soon after the context ends, and so do the methods
// of the Selection.
func (q *Query) Apply(ctx context.Context, value rawjson.Node) (*Selection, error) {
	return q.rowsOf(ctx, value).read()
}

// ApplyEach selects from an array of these values.
func (q *Query) ApplyEach(ctx context.Context, values iter.Seq[rawjson.Node]) (*Selection, error) {
	return q.in(ctx, values, Path{every}).read()
}

// read counts the rows, and finds the paths that lead nowhere in all rows.
func (s *Selection) read() (*Selection, error) {
	unknown := s.query.paths()
	for row := range s.all {
		if s.IsOver() {
			break
		}
		s.total++
		if meetsAll(s.Watch, row, s.query.where) {
			s.matched++
		}
		if len(unknown) > 0 {
			unknown = slices.DeleteFunc(unknown, func(p Path) bool { return p.exists(s.Watch, row) })
		}
	}
	if s.total > 0 && len(unknown) > 0 {
		s.setUnknown(unknown)
	}
	return s, s.Err()
}

// selected returns the matching rows, up to the limit.
func (s *Selection) selected() iter.Seq[rawjson.Node] {
	return func(yield func(rawjson.Node) bool) {
		left := s.count()
		for row := range s.all {
			if left == 0 || s.IsOver() {
				return
			}
			if meetsAll(s.Watch, row, s.query.where) {
				left--
				if !yield(row) {
					return
				}
			}
		}
	}
}

// count returns the number of selected rows.
func (s *Selection) count() int {
	if s.query.limit < 0 {
		return s.matched
	}
	return min(s.matched, s.query.limit)
}

// rowsOf returns a Selection with all rows of a value: the elements of an array, the
// elements of the array that all fields begin with, the object itself if it has a field
// that the query names, or else the elements of the only array of objects in it.
func (q *Query) rowsOf(ctx context.Context, value rawjson.Node) *Selection {
	if value.Kind() == '[' {
		return q.in(ctx, value.Each(), Path{every})
	}
	if prefix := q.commonArray(); prefix != nil {
		array, _ := prefix[:len(prefix)-1].only(value)
		if array.Kind() == '[' {
			return q.in(ctx, array.Each(), prefix)
		}
	}
	if q.isAboutRows() {
		if array := onlyArray(value, q.paths()); !array.IsZero() {
			return q.in(ctx, array.Each(), nil)
		}
	}
	one := func(yield func(rawjson.Node) bool) { yield(value) }
	return &Selection{Watch: work.NewWatch(ctx), query: *q, all: one, isOne: true}
}

// in returns a Selection with these rows. Paths lose the prefix that leads there.
func (q *Query) in(ctx context.Context, rows iter.Seq[rawjson.Node], prefix Path) *Selection {
	s := &Selection{Watch: work.NewWatch(ctx), query: *q, all: rows}
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
			case value.Kind() == '[' && value.At(0).IsZero():
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

// setUnknown records the paths that lead nowhere in all rows, and the fields that the rows have.
func (s *Selection) setUnknown(paths []Path) {
	for _, p := range paths {
		if !slices.ContainsFunc(s.unknown, p.equal) {
			s.unknown = append(s.unknown, p)
		}
	}
	s.known = fieldsOf(first(s.all, sampledRows), maxNames+1)
	s.query.fields = slices.DeleteFunc(slices.Clone(s.query.fields), func(p Path) bool { return slices.ContainsFunc(s.unknown, p.equal) })
}

// first returns the first rows.
func first(rows iter.Seq[rawjson.Node], n int) iter.Seq[rawjson.Node] {
	return func(yield func(rawjson.Node) bool) {
		left := n
		for row := range rows {
			if left--; !yield(row) || left == 0 {
				return
			}
		}
	}
}

// Limits of the fields that a note names.
const (
	sampledRows = 20
	maxNames    = 30
)

// fieldsOf returns the names of the fields that rows have, up to a limit.
func fieldsOf(rows iter.Seq[rawjson.Node], limit int) (names []string) {
	seen := map[string]bool{}
	for row := range rows {
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
