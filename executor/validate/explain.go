package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpx/internal/plain"
)

// maxFindings ends the search in one array or object.
const maxFindings = 50

// finding is a problem, and what is needed to merge it with those of other
// alternatives.
type finding struct {
	Problem
	missing bool  // a required property is not given
	allowed []any // the values that an enum or const would have accepted
	got     any   // instead of one of these
	isLong  bool  // Text does not list them
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
	if allowed := r.refusal(value); allowed != nil {
		return append(found, wrongValue(allowed, value, at))
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
	return ok && slices.Contains(types, "integer") && (!strings.ContainsAny(number.String(), ".eE") || rational(number).IsInt())
}

func wrongType(types []string, value any, at []string) finding {
	f := problem(at, "expected %s, got %s", orList(types), describe(value))
	f.Want = types
	return f
}

// refusal returns the values that const or enum allow, if the value is not one of them.
func (r *rule) refusal(value any) []any {
	switch {
	case len(r.constant) == 0 && len(r.enum) == 0:
		return nil
	case len(r.constant) > 0 && canonical(r.constant[0]) != canonical(value):
		return r.constant
	case len(r.enum) > 0 && !r.enumKeys[canonical(value)]:
		return r.enum
	}
	return nil
}

func (r *rule) explainText(v string, at []string) []finding {
	found := counted(r.minLength, r.maxLength, utf8.RuneCountInString(v), "character", at)
	if r.pattern == nil || r.pattern.MatchString(v) {
		return found
	}
	return append(found, problem(at, "expected to match %s, got %s", clip(r.pattern.written, 100), show(v)))
}

// counted compares a number of things with its limits.
func counted(least, most *int, n int, noun string, at []string) []finding {
	if least != nil && n < *least {
		return []finding{problem(at, "expected at least %s, got %s", plain.Count(*least, noun), plain.Number(n))}
	}
	if most != nil && n > *most {
		return []finding{problem(at, "expected at most %s, got %s", plain.Count(*most, noun), plain.Number(n))}
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
	longLists := 0
	for _, missing := range []bool{true, false} {
		for _, f := range found {
			key := f.key()
			if f.missing != missing || seen[key] {
				continue
			}
			seen[key] = true
			if f.isLong && longLists < maxLongLists {
				longLists++
				f.Text = f.listAllowed()
			}
			problems = append(problems, f.Problem)
		}
	}
	return problems
}

// key returns a text that equal findings share.
func (f finding) key() string {
	if f.isLong {
		return f.String() + canonical(f.allowed)
	}
	return f.String()
}

func (r *rule) explainObject(v map[string]any, at []string) (found []finding) {
	for _, name := range r.required {
		if _, ok := v[name]; !ok {
			found = append(found, missing(at, name, "required"))
		}
	}
	found = append(found, r.explainDependent(v, at)...)
	found = append(found, counted(r.minProperties, r.maxProperties, len(v), "property", at)...)
	if len(r.properties) == 0 && len(r.patternProperties) == 0 && r.additionalProperties == nil && r.propertyNames == nil {
		return found
	}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if len(found) >= maxFindings {
			break
		}
		found = append(found, r.explainMember(v, key, at)...)
	}
	return found
}

// explainDependent checks the demands on objects that have a property.
func (r *rule) explainDependent(v map[string]any, at []string) (found []finding) {
	if len(r.dependentRequired) == 0 && len(r.dependentSchemas) == 0 {
		return nil
	}
	for _, property := range slices.Sorted(maps.Keys(v)) {
		for _, name := range r.dependentRequired[property] {
			if _, ok := v[name]; !ok {
				found = append(found, missing(at, name, "required with "+show(property)))
			}
		}
		found = append(found, r.dependentSchemas[property].explain(v, at)...)
	}
	return found
}

// explainMember checks one property, its name and its value.
func (r *rule) explainMember(v map[string]any, key string, at []string) (found []finding) {
	here := below(at, key)
	for _, f := range r.propertyNames.explain(key, here) {
		f.Text, f.Want = "as a name: "+f.Text, nil
		found = append(found, f)
	}
	declared := r.declared(key)
	for _, rule := range declared {
		found = append(found, rule.explain(v[key], here)...)
	}
	switch others := r.additionalProperties; {
	case len(declared) > 0 || others == nil:
		return found
	case others.never:
		return append(found, r.unknownProperty(v, key, here))
	default:
		return append(found, others.explain(v[key], here)...)
	}
}

// declared returns the rules that properties and patternProperties have for a key.
func (r *rule) declared(key string) (rules []*rule) {
	if property, ok := r.properties[key]; ok {
		rules = append(rules, property)
	}
	for _, p := range r.patternProperties {
		if p.pattern.MatchString(key) {
			rules = append(rules, p.rule)
		}
	}
	return rules
}

// unknownProperty suggests a declared property that is not given.
func (r *rule) unknownProperty(v map[string]any, key string, at []string) finding {
	var known, free []string
	for _, name := range slices.Sorted(maps.Keys(r.properties)) {
		known = append(known, clip(name, maxShown))
		if _, given := v[name]; !given {
			free = append(free, name)
		}
	}
	if near := suggest(key, free); near != "" {
		return problem(at, "unknown property; did you mean %s?", show(near))
	}
	if len(known) == 0 {
		return problem(at, "unknown property; none are allowed")
	}
	return problem(at, "unknown property; known: %s", commaList(known))
}

func (r *rule) explainArray(v []any, at []string) []finding {
	found := counted(r.minItems, r.maxItems, len(v), "item", at)
	if r.uniqueItems {
		found = append(found, repeated(v, at)...)
	}
	found = append(found, r.explainContains(v, at)...)
	for i, item := range v {
		if len(found) >= maxFindings {
			break
		}
		rule := r.ofItem(i)
		if i >= len(r.prefixItems) && rule != nil && rule.never {
			return append(found, problem(at, "expected at most %s, got %s", plain.Count(len(r.prefixItems), "item"), plain.Number(len(v))))
		}
		found = append(found, rule.explain(item, below(at, strconv.Itoa(i)))...)
	}
	return found
}

func repeated(v []any, at []string) []finding {
	first := map[string]int{}
	for i, item := range v {
		key := canonical(item)
		if j, ok := first[key]; ok {
			return []finding{problem(at, "expected unique items, got %s at [%d] and [%d]", show(v[j]), j, i)}
		}
		first[key] = i
	}
	return nil
}

func (r *rule) explainContains(v []any, at []string) []finding {
	if r.contains == nil {
		return nil
	}
	n := r.contained(v, r.contains.matches)
	least, most := r.containLimits()
	found := counted(&least, most, n, "item", at)
	for i := range found {
		found[i].Text = strings.Replace(found[i].Text, ", got", " like "+showRule(r.contains)+", got", 1)
	}
	return found
}

// contained counts the items that match contains. Without a limit, it stops when there are
// enough.
func (r *rule) contained(v []any, matches func(item any) bool) (n int) {
	least, most := r.containLimits()
	for _, item := range v {
		if most == nil && n >= least {
			break
		}
		if matches(item) {
			n++
		}
	}
	return n
}

// containLimits returns how many items must, and may, match contains.
func (r *rule) containLimits() (least int, most *int) {
	if r.minContains == nil {
		return 1, r.maxContains
	}
	return *r.minContains, r.maxContains
}
