package validate

import (
	"regexp"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a call's arguments.
type Problem struct {
	Path []string // keys and array indexes, from the arguments down
	Text string   // `expected integer, got string "three"`, `required`
	Want []string // the JSON types expected, where the type is what is wrong
}

// String is the line to show: `arguments.count: expected integer, got string "three"`.
func (p Problem) String() string {
	return "arguments" + joinPath(p.Path) + ": " + p.Text
}

var (
	plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]{0,63}$`)
	indexKey = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)
)

func joinPath(path []string) string {
	var b strings.Builder
	for _, key := range path {
		switch {
		case plainKey.MatchString(key):
			b.WriteString("." + key)
		case indexKey.MatchString(key):
			b.WriteString("[" + key + "]")
		default:
			b.WriteString("[" + show(key) + "]")
		}
	}
	return b.String()
}

// pick orders the problems to report: what is missing before what is wrong, each
// once.
func pick(found []finding) []Problem {
	slices.SortStableFunc(found, func(a, b finding) int { return a.rank() - b.rank() })
	seen := map[string]bool{}
	var problems []Problem
	for _, f := range found {
		line := f.String()
		if seen[line] {
			continue
		}
		seen[line] = true
		problems = append(problems, f.Problem)
	}
	return problems
}
