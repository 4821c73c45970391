package results

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/work"
)

// The bounds of an outline.
const (
	maxOutline  = 750  // bytes
	maxDepth    = 4    // nested objects
	maxArrays   = 12   // arrays directly in each other
	maxHeadings = 20   // of a text
	maxKeys     = 250  // of one object; no outline has room for more
	maxFields   = 4000 // at one depth
	maxKey      = 40   // bytes
)

// outline describes a result in one line: its keys and lengths, as in
// "total, items[312]{id, title}". If it is too long, it leaves out nested keys first, then the
// fields of objects that are not rows, and then everything besides the rows.
func (s *shape) outline(limit int) string {
	least := max(s.rowDepth(), 1)
	for depth := maxDepth; depth >= least; depth-- {
		if text := unwrap(s.text(depth)); len(text) <= limit {
			return text
		}
	}
	if text := unwrap(s.rowText(least, true)); len(text) <= limit {
		return text
	}
	return plain.Cut(unwrap(s.rowText(least, false)), limit)
}

// unwrap removes the braces around the keys of an object.
func unwrap(text string) string {
	if inner, ok := strings.CutPrefix(text, "{"); ok && inner != "}" {
		return strings.TrimSuffix(inner, "}")
	}
	return text
}

// rowFields returns the names of the fields that a select of JSON would choose from: those
// of the rows, or else of the object.
func (s *shape) rowFields() (names []string) {
	for depth := s.rowDepth(); depth > 1; depth-- {
		next := slices.IndexFunc(s.fields, func(f *field) bool { return f.rowDepth() == depth-1 })
		s = &s.fields[next].shape
	}
	for _, f := range s.fields {
		names = append(names, f.key)
	}
	return names
}

// rowDepth returns how many levels of keys an outline needs to show the fields of the
// rows: the nearest array of objects. It is 0 if there are no rows.
func (s *shape) rowDepth() (least int) {
	if s.kind == '{' && s.arrays != "" {
		return 1
	}
	for _, f := range s.fields {
		if d := f.rowDepth(); d > 0 && (least == 0 || d+1 < least) {
			least = d + 1
		}
	}
	return least
}

// text writes a shape with so many levels of keys.
func (s *shape) text(depth int) string {
	switch {
	case s.kind != '{':
		return s.arrays
	case depth == 0:
		return s.arrays + "{…}"
	}
	var keys []string
	for _, f := range s.fields {
		keys = append(keys, label(f.key)+f.text(depth-1))
	}
	return s.arrays + "{" + strings.Join(keys, ", ") + "}"
}

// rowText is text with the fields of the rows at a depth, and no fields of other objects. With
// hasOthers, it also has the keys that do not lead to the rows.
func (s *shape) rowText(depth int, hasOthers bool) string {
	if depth <= 1 {
		return s.text(1)
	}
	var keys []string
	isLeftOut := false
	for _, f := range s.fields {
		switch {
		case f.rowDepth() == depth-1:
			keys = append(keys, label(f.key)+f.rowText(depth-1, hasOthers))
		case hasOthers:
			keys = append(keys, label(f.key)+f.text(0))
		default:
			isLeftOut = true
		}
	}
	if isLeftOut {
		keys = append(keys, "…")
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

// lines describes a text that is not JSON: its lines and headings.
func lines(ctx context.Context, text string, limit int) (string, error) {
	watch := work.NewWatch(ctx)
	var headings []string
	count := 0
	for line := range strings.Lines(text) {
		if watch.IsOver() {
			break
		}
		if count++; line[0] == '#' && len(headings) < maxHeadings && heading.MatchString(line) {
			headings = append(headings, strings.TrimSpace(line))
		}
	}
	shape := plain.Count(count, "line")
	if len(headings) > 0 {
		shape += ": " + strings.Join(headings, ", ")
	}
	return plain.Cut(shape, limit), watch.Err()
}
