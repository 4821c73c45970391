package selection

import (
	"slices"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// Limits of the values that a selection without rows names.
const (
	maxShown     = 8
	maxShownText = 40
	maxNamed     = 3 // conditions
)

// unmet is a condition that no row meets.
type unmet struct {
	comparison
	isMetOnce bool
	values    []string // that the rows have
	seen      map[string]bool
}

// explainNone returns the values that the rows have where a condition is met by no row; "" if
// each condition is met by some row.
func (s *Selection) explainNone() string {
	var all []*unmet
	for c := range leaves(s.query.where) {
		if !slices.ContainsFunc(s.unknown, c.path.equal) {
			all = append(all, &unmet{comparison: c, seen: map[string]bool{}})
		}
	}
	for row := range s.all {
		if s.IsOver() || len(all) == 0 {
			break
		}
		for _, u := range all {
			u.read(s, row)
		}
		all = slices.DeleteFunc(all, func(u *unmet) bool { return u.isMetOnce })
	}
	var parts []string
	for _, u := range all[:min(len(all), maxNamed)] {
		if len(u.values) > 0 {
			parts = append(parts, shown(u.path.String())+" is "+u.list())
		}
	}
	return strings.Join(slices.Compact(parts), "; ")
}

// read reads the values of a row.
func (u *unmet) read(s *Selection, row rawjson.Node) {
	if u.isMetOnce = u.isMet(s.Watch, row); u.isMetOnce || len(u.values) > maxShown {
		return
	}
	eachValue(s.Watch, u.path, row, func(n rawjson.Node) bool {
		if n.Kind() == '{' || n.Kind() == '[' {
			return true
		}
		text := "null"
		if !n.IsZero() {
			text = plain.Cut(plain.Line(n.Text()), maxShownText)
		}
		if !u.seen[text] {
			u.seen[text] = true
			u.values = append(u.values, text)
		}
		return len(u.values) <= maxShown
	})
}

// list returns the values on one line.
func (u *unmet) list() string {
	if len(u.values) > maxShown {
		return strings.Join(u.values[:maxShown], ", ") + ", …"
	}
	return strings.Join(u.values, ", ")
}
