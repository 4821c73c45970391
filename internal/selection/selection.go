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

// Selection is the result of a Query. It keeps only rows that it has put in order; others it
// finds again when they are needed.
type Selection struct {
	*work.Watch
	query   Query                  // with paths that begin at the rows
	all     iter.Seq[rawjson.Node] // all rows of the value
	total   int                    // their number
	isOne   bool                   // the value is an object, which is the only row
	unit    string                 // what a row is called
	matched int                    // rows that meet the conditions
	none    string                 // the values that the rows have, if no row matches
	unknown []Path
	known   []string // fields that the rows have
	notes   []string // about values that were left out

	room    *room
	collect collector
	sorted  []sortedRow
	rows    *Selection // whose groups these are; nil if the rows are not groups
}

// collector collects the rows that meet the conditions.
type collector interface{ add(row rawjson.Node) error }

// Apply selects from a value. It fails soon after the context ends, and so do the methods
// of the Selection.
func (q *Query) Apply(ctx context.Context, value rawjson.Node) (*Selection, error) {
	return q.rowsOf(ctx, value).read(len(value.Raw()))
}

// ApplyEach selects from an array of these values, which have some bytes together.
func (q *Query) ApplyEach(ctx context.Context, values iter.Seq[rawjson.Node], bytes int) (*Selection, error) {
	return q.in(ctx, values, Path{every}).read(bytes)
}

// ApplyCaptures selects from the captures in a text of some bytes.
func (q *Query) ApplyCaptures(ctx context.Context, rows iter.Seq[rawjson.Node], bytes int) (*Selection, error) {
	return q.in(ctx, rows, nil).read(bytes)
}

// read counts the rows, finds the paths that lead nowhere in all rows, and groups or orders the
// rows. The value has some bytes.
func (s *Selection) read(bytes int) (*Selection, error) {
	s.unit = "row"
	s.room = &room{s.query.Memory(bytes), s.query.from != ""}
	if !s.query.isGrouped() {
		return s, s.collectRows()
	}
	g := newGrouping(s)
	s.collect = g
	if err := s.collectRows(); err != nil {
		return s, err
	}
	return g.selection()
}

// collectRows reads all rows once.
func (s *Selection) collectRows() error {
	var ordered *sorter
	if s.collect == nil && len(s.query.order) > 0 {
		ordered = &sorter{Selection: s}
		s.collect = ordered
	}
	unknown := s.query.paths()
	for row := range s.all {
		if s.IsOver() {
			break
		}
		s.total++
		if s.isMatch(row) {
			s.matched++
			if err := s.keep(row); err != nil {
				return err
			}
		}
		if len(unknown) > 0 {
			unknown = slices.DeleteFunc(unknown, func(p Path) bool { return p.exists(s.Watch, row) })
		}
	}
	if ordered != nil {
		s.sorted = ordered.sorted()
	}
	if s.total > 0 && len(unknown) > 0 && s.rows == nil {
		s.setUnknown(unknown)
	}
	if s.matched == 0 && s.total > 0 && s.query.where != nil {
		s.none = s.explainNone()
	}
	return s.Err()
}

// keep gives a matching row to the collector.
func (s *Selection) keep(row rawjson.Node) error {
	if s.collect == nil {
		return nil
	}
	return s.collect.add(row)
}

// isMatch reports whether a row meets the conditions.
func (s *Selection) isMatch(row rawjson.Node) bool {
	return s.query.where == nil || s.query.where.isMet(s.Watch, row)
}

// selected returns the matching rows, up to the limit.
func (s *Selection) selected() iter.Seq[rawjson.Node] {
	return func(yield func(rawjson.Node) bool) {
		left := s.count()
		for _, row := range s.sorted {
			if left--; left < 0 || s.IsOver() || !yield(row.Node) {
				return
			}
		}
		if len(s.query.order) > 0 {
			return
		}
		for row := range s.all {
			if left == 0 || s.IsOver() {
				return
			}
			if s.isMatch(row) {
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
	return &Selection{Watch: work.NewWatch(ctx), query: q.below(prefix), all: rows}
}

// commonArray returns the path of an array, with its [], that all fields begin with; without
// fields, all conditions.
func (q *Query) commonArray() Path {
	paths := q.shownPaths()
	if len(paths) == 0 {
		paths = q.paths()
	}
	if len(paths) == 0 {
		return nil
	}
	end := slices.Index(paths[0], every)
	if end <= 0 {
		return nil
	}
	prefix := paths[0][:end+1]
	for _, p := range paths {
		if p.without(prefix) == nil || len(p.without(prefix)) == len(p) {
			return nil
		}
	}
	return prefix
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
	if !s.query.isGrouped() {
		s.query.columns = slices.DeleteFunc(s.query.columns, func(c column) bool { return slices.ContainsFunc(s.unknown, c.path.equal) })
	}
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

// IsEmpty reports whether there were no rows to select from.
func (s *Selection) IsEmpty() bool {
	if s.rows != nil {
		return s.rows.total == 0
	}
	return s.total == 0
}

// IsKnown reports whether every path of the query leads to a value in some row.
func (s *Selection) IsKnown() bool { return len(s.unknown) == 0 }

// Note returns a line about values that were left out, and about fields that no row has, with
// near matches and the fields that exist; "" if there are none.
func (s *Selection) Note() string {
	if len(s.unknown) == 0 {
		return strings.Join(s.notes, "; ")
	}
	start := "no row has "
	if s.isOne && s.rows == nil || s.rows != nil && s.rows.isOne {
		start = "there is no "
	}
	lines := slices.Clone(s.notes)
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
