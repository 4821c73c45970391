package results

import (
	"slices"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/work"
)

// maxMatchingNames limits the names that an answer without a match shows.
const maxMatchingNames = 3

// nameFinder finds names of members that match a pattern.
type nameFinder struct {
	*work.Watch
	pattern *pattern
	found   []string
}

// namesIn says which names in some values match a pattern; "" if there are none.
func namesIn(w *work.Watch, f *found, p *pattern) string {
	finder := nameFinder{Watch: w, pattern: p}
	pointer := ""
	if f.several || len(f.steps) > 0 {
		for _, step := range f.steps {
			pointer += "/" + escapeToken.Replace(step)
		}
	}
	for n := range f.each() {
		if !finder.visit(n, pointer) {
			break
		}
	}
	if len(finder.found) == 0 {
		return ""
	}
	return "; names are not searched, but these match: " + strings.Join(finder.found, ", ")
}

// escapeToken escapes a key in a JSON Pointer.
var escapeToken = strings.NewReplacer("~", "~0", "/", "~1")

// visit finds names in a value, until there are enough.
func (f *nameFinder) visit(n rawjson.Node, pointer string) (more bool) {
	for key, member := range n.Members() {
		if f.IsOver() {
			return false
		}
		at := pointer + "/" + escapeToken.Replace(key)
		if f.pattern.find(f.Watch, key) != nil {
			if name := plain.Cut(plain.Line(at), maxLine); !slices.Contains(f.found, name) {
				f.found = append(f.found, name)
			}
			if len(f.found) == maxMatchingNames {
				return false
			}
		}
		if !f.visit(member, at) {
			return false
		}
	}
	for element := range n.Each() {
		if f.IsOver() || !f.visit(element, pointer+"/*") {
			return false
		}
	}
	return true
}
