package validate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxFindings ends the search in one array or object.
const maxFindings = 50

// finding is a problem, and what is needed to merge it with those of other
// alternatives.
type finding struct {
	Problem
	missing bool  // a required property is not given
	allowed []any // the values that an enum or const would have accepted
}

func missing(at []string, name, text string) finding {
	return finding{Problem: Problem{Path: below(at, name), Text: text}, missing: true}
}

func problem(at []string, format string, args ...any) finding {
	return finding{Problem: Problem{Path: at, Text: fmt.Sprintf(format, args...)}}
}

// below returns the path of a member.
func below(at []string, key string) []string { return append(slices.Clip(at), key) }

func (r *rule) matches(value any) bool { return len(r.explain(value, nil)) == 0 }

// explain returns what is wrong with the value at a path, nothing if it is valid. A
// nil rule accepts everything.
func (r *rule) explain(value any, at []string) (found []finding) {
	switch {
	case r == nil:
		return nil
	case r.never:
		return []finding{problem(at, "not allowed")}
	case r.ref != nil:
		found = r.ref.explain(value, at)
	}
	if len(r.types) > 0 && !hasType(value, r.types) {
		return append(found, wrongType(r.types, value, at))
	}
	for _, allowed := range [][]any{r.constant, r.enum} {
		if len(allowed) > 0 && !containsValue(allowed, value) {
			return append(found, wrongValue(allowed, value, at))
		}
	}
	switch v := value.(type) {
	case string:
		found = append(found, r.explainText(v, at)...)
	case json.Number:
		found = append(found, r.explainNumber(v, at)...)
	case []any:
		found = append(found, r.explainArray(v, at)...)
	case map[string]any:
		found = append(found, r.explainObject(v, at)...)
	}
	return append(found, r.explainForms(value, at)...)
}

func hasType(value any, types []string) bool {
	name := typeName(value)
	if slices.Contains(types, name) {
		return true
	}
	number, ok := value.(json.Number)
	return ok && slices.Contains(types, "integer") && rational(number).IsInt()
}

func wrongType(types []string, value any, at []string) finding {
	f := problem(at, "expected %s, got %s", orList(types), describe(value))
	f.Want = types
	return f
}

func containsValue(list []any, value any) bool {
	want := canonical(value)
	return slices.ContainsFunc(list, func(v any) bool { return canonical(v) == want })
}

func (r *rule) explainText(v string, at []string) []finding {
	found := counted(r.minLength, r.maxLength, utf8.RuneCountInString(v), unit{"character", "characters"}, at)
	if r.pattern == nil || r.pattern.MatchString(v) {
		return found
	}
	return append(found, problem(at, "expected to match %s, got %s", clip(r.pattern.written, 100), show(v)))
}

// unit names one thing and several.
type unit struct{ one, many string }

var items = unit{"item", "items"}

func (u unit) of(n int) string {
	if n == 1 {
		return "1 " + u.one
	}
	return fmt.Sprintf("%d %s", n, u.many)
}

// counted compares a number of things with its limits.
func counted(least, most *int, n int, u unit, at []string) []finding {
	if least != nil && n < *least {
		return []finding{problem(at, "expected at least %s, got %d", u.of(*least), n)}
	}
	if most != nil && n > *most {
		return []finding{problem(at, "expected at most %s, got %d", u.of(*most), n)}
	}
	return nil
}

func (r *rule) explainNumber(v json.Number, at []string) (found []finding) {
	n := rational(v)
	for _, l := range []struct {
		limit json.Number
		text  string
		fits  func(compared int) bool
	}{
		{r.minimum, "at least", func(c int) bool { return c >= 0 }},
		{r.maximum, "at most", func(c int) bool { return c <= 0 }},
		{r.exclusiveMinimum, "more than", func(c int) bool { return c > 0 }},
		{r.exclusiveMaximum, "less than", func(c int) bool { return c < 0 }},
	} {
		if l.limit != "" && !l.fits(n.Cmp(rational(l.limit))) {
			found = append(found, problem(at, "expected %s %s, got %s", l.text, show(l.limit), show(v)))
		}
	}
	if r.multipleOf != "" && !n.Quo(n, rational(json.Number(r.multipleOf))).IsInt() {
		found = append(found, problem(at, "expected a multiple of %s, got %s", show(json.Number(r.multipleOf)), show(v)))
	}
	return found
}

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
