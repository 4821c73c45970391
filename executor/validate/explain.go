package validate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// enough findings in one array or object end the search there.
const enough = 50

// explainer finds what is wrong with a value that a library has refused. It
// reads the same reduced schema, so that both libraries get the same words.
type explainer struct {
	root     any
	patterns map[string]*regexp.Regexp // every pattern in root, compiled
	hiding   bool                      // $ref hides the keywords beside it, as up to draft 7
}

// finding is a problem and what is needed to merge it with those of other
// alternatives.
type finding struct {
	Problem
	allowed []any // the values that an enum or const would have accepted
}

// rank sorts what is missing before what is wrong.
func (f finding) rank() int {
	if strings.HasPrefix(f.Text, "required") {
		return 0
	}
	return 1
}

func problem(at []string, format string, args ...any) finding {
	return finding{Problem: Problem{Path: at, Text: fmt.Sprintf(format, args...)}}
}

// below is the path of a member.
func below(at []string, key string) []string { return append(slices.Clip(at), key) }

func (e explainer) matches(schema, value any) bool {
	return len(e.find(schema, value, nil)) == 0
}

// find returns what is wrong with the value at a path, nothing if it is valid.
func (e explainer) find(schema, value any, at []string) (found []finding) {
	s, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			found = append(found, problem(at, "not allowed"))
		}
		return found
	}
	if ref, ok := s["$ref"].(string); ok {
		found = e.find(target(e.root, ref), value, at)
		if e.hiding {
			return found
		}
	}
	if types := stringList(s["type"]); len(types) > 0 && !isOneOf(types, value) {
		return append(found, wrongType(types, value, at))
	}
	for _, allowed := range allowedValues(s) {
		if !containsValue(allowed, value) {
			return append(found, wrongValue(allowed, value, at))
		}
	}
	switch v := value.(type) {
	case string:
		found = append(found, e.text(s, v, at)...)
	case json.Number:
		found = append(found, numeric(s, v, at)...)
	case []any:
		found = append(found, e.array(s, v, at)...)
	case map[string]any:
		found = append(found, e.object(s, v, at)...)
	}
	return append(found, e.combined(s, value, at)...)
}

func stringList(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		out = append(out, item.(string))
	}
	return out
}

func isOneOf(types []string, value any) bool {
	name := typeName(value)
	if slices.Contains(types, name) {
		return true
	}
	return name == "number" && slices.Contains(types, "integer") && rational(value).IsInt()
}

func wrongType(types []string, value any, at []string) finding {
	f := problem(at, "expected %s, got %s", orList(types), describe(value))
	f.Want = types
	return f
}

// allowedValues are the lists of a const and an enum, as far as there are any.
func allowedValues(s map[string]any) (lists [][]any) {
	if value, ok := s["const"]; ok {
		lists = append(lists, []any{value})
	}
	if list, ok := s["enum"].([]any); ok {
		lists = append(lists, list)
	}
	return lists
}

func containsValue(list []any, value any) bool {
	want := canonical(value)
	return slices.ContainsFunc(list, func(v any) bool { return canonical(v) == want })
}

func wrongValue(allowed []any, value any, at []string) finding {
	var shown, texts []string
	for _, v := range allowed {
		shown = append(shown, show(v))
		if text, ok := v.(string); ok {
			texts = append(texts, text)
		}
	}
	f := problem(at, "expected %s, got %s", orList(shown), show(value))
	f.allowed = allowed
	if got, ok := value.(string); ok && len(allowed) > 1 {
		if near, ok := nearest(got, texts); ok {
			f.Text += fmt.Sprintf("; did you mean %s?", show(near))
		}
	}
	return f
}

func (e explainer) text(s map[string]any, v string, at []string) []finding {
	found := counted(s, "Length", utf8.RuneCountInString(v), at)
	re, ok := s["pattern"].(string)
	if !ok || e.patternMatches(re, v) {
		return found
	}
	if original, ok := s["$comment"].(string); ok {
		re = original
	}
	return append(found, problem(at, "expected to match %s, got %s", clip(re, 100), show(v)))
}

// patternMatches reports whether a pattern of the schema matches a text.
func (e explainer) patternMatches(pattern, text string) bool {
	re := e.patterns[pattern]
	return re != nil && re.MatchString(text)
}

// units are what min… and max… count.
var units = map[string][2]string{
	"Length":     {"character", "characters"},
	"Items":      {"item", "items"},
	"Properties": {"property", "properties"},
}

func counted(s map[string]any, what string, n int, at []string) []finding {
	if least, ok := whole(s["min"+what]); ok && n < least {
		return []finding{problem(at, "expected at least %s, got %d", quantity(least, what), n)}
	}
	if most, ok := whole(s["max"+what]); ok && n > most {
		return []finding{problem(at, "expected at most %s, got %d", quantity(most, what), n)}
	}
	return nil
}

func quantity(n int, what string) string {
	if n == 1 {
		return "1 " + units[what][0]
	}
	return fmt.Sprintf("%d %s", n, units[what][1])
}

var limits = []struct {
	keyword, text string
	fits          func(compared int) bool
}{
	{"minimum", "at least", func(c int) bool { return c >= 0 }},
	{"maximum", "at most", func(c int) bool { return c <= 0 }},
	{"exclusiveMinimum", "more than", func(c int) bool { return c > 0 }},
	{"exclusiveMaximum", "less than", func(c int) bool { return c < 0 }},
}

func numeric(s map[string]any, v json.Number, at []string) (found []finding) {
	n := rational(v)
	for _, l := range limits {
		if limit := rational(s[l.keyword]); limit != nil && !l.fits(n.Cmp(limit)) {
			found = append(found, problem(at, "expected %s %s, got %s", l.text, show(s[l.keyword]), show(v)))
		}
	}
	if step := rational(s["multipleOf"]); step != nil && !n.Quo(n, step).IsInt() {
		found = append(found, problem(at, "expected a multiple of %s, got %s", show(s["multipleOf"]), show(v)))
	}
	return found
}
