package validate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/tokens"
)

// explainForms checks the keywords that apply other schemas to the same value.
func (r *rule) explainForms(v any, at []string) (found []finding) {
	for _, rule := range r.allOf {
		found = append(found, rule.explain(v, at)...)
	}
	if tries, matched := tryForms(r.anyOf, v, at, 1); len(tries) > 0 && matched == 0 {
		found = append(found, explainNoForm(tries, v, at)...)
	}
	switch tries, matched := tryForms(r.oneOf, v, at, 2); {
	case len(tries) > 0 && matched == 0:
		found = append(found, explainNoForm(tries, v, at)...)
	case matched > 1:
		found = append(found, problem(at, "matches more than one form"))
	}
	if r.not != nil && r.not.matches(v) {
		found = append(found, problem(at, "must not match %s", showRule(r.not)))
	}
	if r.condition != nil {
		found = append(found, r.branch(v).explain(v, at)...)
	}
	return append(found, r.explainUnevaluated(v, at)...)
}

// branch returns the rule that the condition chooses for a value.
func (r *rule) branch(v any) *rule {
	if r.condition.matches(v) {
		return r.then
	}
	return r.otherwise
}

// try is one form of an anyOf or oneOf, and why the value does not have that form.
type try struct {
	form  *rule
	found []finding
}

// tryForms looks at every form once: more would double the work at each level. It stops when
// enough of them match.
func tryForms(forms []*rule, v any, at []string, enough int) (tries []try, matched int) {
	for _, form := range forms {
		if matched == enough {
			break
		}
		t := try{form, form.explain(v, at)}
		if len(t.found) == 0 {
			matched++
		}
		tries = append(tries, t)
	}
	return tries, matched
}

// explainNoForm explains why a value has none of several forms. If it can tell
// which form the caller wanted, it explains that one.
func explainNoForm(tries []try, v any, at []string) []finding {
	var types []string
	var likely []try
	for _, t := range tries {
		wrong := slices.IndexFunc(t.found, func(f finding) bool { return f.Want != nil && len(f.Path) == len(at) })
		switch {
		case t.form.never:
		case wrong < 0:
			likely = append(likely, t)
		default:
			types = appendNew(types, t.found[wrong].Want...)
		}
	}
	if len(likely) > 1 {
		likely = narrow(likely, v, at)
	}
	switch {
	case len(likely) == 1:
		return likely[0].found
	case len(likely) > 1:
		if common := inAll(likely); len(common) > 0 {
			return common
		}
		return []finding{summary(likely, len(tries), at)}
	case len(types) > 0:
		return []finding{wrongType(types, v, at)}
	}
	return []finding{problem(at, "not allowed")}
}

// narrow drops forms by a property that discriminates between them: one with an
// enum or const in each form. The value itself may be what has the enum or const.
func narrow(tries []try, v any, at []string) []try {
	if merged, ok := mergeAllowed(tries, v, at); ok {
		return merged
	}
	object, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if slices.ContainsFunc(tries, func(t try) bool { return !t.form.discriminates(key) }) {
			continue
		}
		here := below(at, key)
		if merged, ok := mergeAllowed(tries, object[key], here); ok {
			return merged
		}
		return slices.DeleteFunc(tries, func(t try) bool { return allowedAt(t, here) != nil })
	}
	return tries
}

// discriminates reports whether a form has an enum or const for a property.
func (r *rule) discriminates(key string) bool {
	property := r.resolved().properties[key]
	if property == nil {
		return false
	}
	property = property.resolved()
	return len(property.constant) > 0 || len(property.enum) > 0
}

// resolved follows references. There are no loops of references in place.
func (r *rule) resolved() *rule {
	for r.ref != nil {
		r = r.ref
	}
	return r
}

// mergeAllowed makes one list of the values that the forms allow at a path, if
// none of them allows the value there.
func mergeAllowed(tries []try, v any, here []string) ([]try, bool) {
	var allowed []any
	for _, t := range tries {
		list := allowedAt(t, here)
		if list == nil {
			return nil, false
		}
		allowed = append(allowed, list...)
	}
	return []try{{found: []finding{wrongValue(distinct(allowed), v, here)}}}, true
}

// allowedAt returns the values that a form would have accepted at a path.
func allowedAt(t try, here []string) []any {
	for _, f := range t.found {
		if f.allowed != nil && slices.Equal(f.Path, here) {
			return f.allowed
		}
	}
	return nil
}

// inAll returns the findings that all forms share: they are right for each of them.
func inAll(tries []try) []finding {
	common := tries[0].found
	for _, t := range tries[1:] {
		keys := map[string]bool{}
		for _, f := range t.found {
			keys[f.key()] = true
		}
		common = slices.DeleteFunc(slices.Clone(common), func(f finding) bool { return !keys[f.key()] })
	}
	return common
}

// summary names the first problem with each of the first few forms.
func summary(tries []try, forms int, at []string) finding {
	const shown = 3
	var parts []string
	for i, t := range tries[:min(shown, len(tries))] {
		f := t.found[0]
		reason := f.Text
		if path := strings.TrimPrefix(joinPath(f.Path[len(at):]), "."); path != "" {
			reason = path + ": " + reason
		}
		parts = append(parts, fmt.Sprintf("(%d) %s", i+1, tokens.Shorten(reason, maxAllowedTokens/shown)))
	}
	if len(tries) > shown {
		parts = append(parts, "…")
	}
	return problem(at, "expected one of %d forms: %s", forms, strings.Join(parts, " "))
}

// explainUnevaluated checks the members that no other keyword has evaluated.
func (r *rule) explainUnevaluated(v any, at []string) (found []finding) {
	others := r.unevaluatedProperties
	if _, isArray := v.([]any); isArray {
		others = r.unevaluatedItems
	}
	if others == nil {
		return nil
	}
	evaluating := r.withoutUnevaluated()
	all := maps.Collect(members(v))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !evaluating.evaluates(v, key, (*rule).matches) {
			found = append(found, others.explain(all[key], below(at, key))...)
		}
	}
	return found
}

func (r *rule) withoutUnevaluated() *rule {
	rest := *r
	rest.unevaluatedProperties, rest.unevaluatedItems = nil, nil
	return &rest
}

// evaluates reports whether a rule that v matches has looked at the member key of
// v: unevaluatedProperties and unevaluatedItems apply to all other members.
func (r *rule) evaluates(v any, key string, matches func(r *rule, v any) bool) bool {
	applied := slices.Concat([]*rule{r.ref}, r.allOf, r.anyOf, r.oneOf)
	switch v := v.(type) {
	case map[string]any:
		if r.additionalProperties != nil || r.unevaluatedProperties != nil || len(r.declared(key)) > 0 {
			return true
		}
		for _, property := range slices.Sorted(maps.Keys(r.dependentSchemas)) {
			if _, given := v[property]; given {
				applied = append(applied, r.dependentSchemas[property])
			}
		}
	case []any:
		i, _ := strconv.Atoi(key)
		if r.items != nil || r.unevaluatedItems != nil || i < len(r.prefixItems) || r.contains != nil && matches(r.contains, v[i]) {
			return true
		}
	}
	switch {
	case r.condition == nil:
	case matches(r.condition, v):
		applied = append(applied, r.condition, r.then)
	default:
		applied = append(applied, r.otherwise)
	}
	return slices.ContainsFunc(applied, func(rule *rule) bool {
		return rule != nil && matches(rule, v) && rule.evaluates(v, key, matches)
	})
}
