package validate

import (
	"regexp"
	"strings"
)

// Problem is one thing that is wrong with a call's arguments.
type Problem struct {
	Path []string // keys and array indexes, from the arguments down
	Text string   // `expected integer, got string "three"`, `required`
	Want []string // the expected JSON types, if the type is wrong
}

// String returns the line to show: `arguments.count: expected integer, got string "three"`.
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

// report returns the problems of findings: each once, missing properties first.
func report(found []finding) (problems []Problem) {
	seen := map[string]bool{}
	for _, missing := range []bool{true, false} {
		for _, f := range found {
			if line := f.String(); f.missing == missing && !seen[line] {
				seen[line] = true
				problems = append(problems, f.Problem)
			}
		}
	}
	return problems
}
