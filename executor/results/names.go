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

// maxSeenNames limits the names that are remembered, so that each is tried once.
const maxSeenNames = 1000

// nameFinder finds names of members that match a pattern.
type nameFinder struct {
	*work.Watch
	pattern *pattern
	seen    map[string]bool // whether a name matches
	tokens  []string        // of the JSON Pointer to the value that is visited
	found   []string
}

// namesIn says which names in some values match a pattern; "" if there are none.
func namesIn(w *work.Watch, f *found, p *pattern) string {
	finder := nameFinder{Watch: w, pattern: p, seen: map[string]bool{}, tokens: slices.Clone(f.steps)}
	for n := range f.each() {
		if !finder.visit(n) {
			break
		}
	}
	if len(finder.found) == 0 {
		return ""
	}
	return "; names are not searched, but these match: " + strings.Join(finder.found, ", ")
}

// visit finds names in a value, until there are enough.
func (f *nameFinder) visit(n rawjson.Node) (more bool) {
	f.tokens = append(f.tokens, "")
	last := len(f.tokens) - 1
	for key, member := range n.Members() {
		f.tokens[last] = key
		if f.isMatch(key) {
			f.add()
		}
		if f.IsOver() || len(f.found) == maxMatchingNames || !f.visit(member) {
			return false
		}
	}
	f.tokens[last] = "*"
	for element := range n.Each() {
		if f.IsOver() || !f.visit(element) {
			return false
		}
	}
	f.tokens = f.tokens[:last]
	return true
}

// isMatch reports whether a name matches.
func (f *nameFinder) isMatch(name string) bool {
	isMatch, ok := f.seen[name]
	if !ok {
		isMatch = f.pattern.find(f.Watch, name) != nil
		if len(f.seen) < maxSeenNames {
			f.seen[name] = isMatch
		}
	}
	return isMatch
}

// add adds the name that is visited.
func (f *nameFinder) add() {
	pointer := ""
	for _, token := range f.tokens {
		pointer += "/" + escapeToken.Replace(token)
	}
	if pointer = plain.Cut(plain.Line(pointer), maxLine); !slices.Contains(f.found, pointer) {
		f.found = append(f.found, pointer)
	}
}

// escapeToken escapes a key in a JSON Pointer.
var escapeToken = strings.NewReplacer("~", "~0", "/", "~1")
