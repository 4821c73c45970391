package validate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// combined checks the keywords that apply other schemas to the same value.
func (e explainer) combined(s map[string]any, v any, at []string) (found []finding) {
	all, _ := s["allOf"].([]any)
	for _, schema := range all {
		found = append(found, e.find(schema, v, at)...)
	}
	if forms, ok := s["anyOf"].([]any); ok {
		tries, matched := e.tryAll(forms, v, at)
		if matched == 0 {
			found = append(found, e.noForm(tries, v, at)...)
		}
	}
	if forms, ok := s["oneOf"].([]any); ok {
		tries, matched := e.tryAll(forms, v, at)
		if matched == 0 {
			found = append(found, e.noForm(tries, v, at)...)
		}
		if matched > 1 {
			found = append(found, problem(at, "matches more than one form"))
		}
	}
	if schema, ok := s["not"]; ok && e.matches(schema, v) {
		found = append(found, problem(at, "must not match %s", show(schema)))
	}
	if condition, ok := s["if"]; ok {
		branch := s["else"]
		if e.matches(condition, v) {
			branch = s["then"]
		}
		found = append(found, e.find(branch, v, at)...)
	}
	return append(found, e.unevaluated(s, v, at)...)
}

// try is one form of an anyOf or oneOf, and why the value has not that form.
type try struct {
	form  any
	found []finding
}

// tryAll looks at every form once: more would double the work at each level.
func (e explainer) tryAll(forms []any, v any, at []string) (tries []try, matched int) {
	for _, form := range forms {
		t := try{form, e.find(form, v, at)}
		if len(t.found) == 0 {
			matched++
		}
		tries = append(tries, t)
	}
	return tries, matched
}

// noForm explains why a value has none of several forms, by the form it was
// meant to have if that can be told.
func (e explainer) noForm(tries []try, v any, at []string) []finding {
	var types []string
	var likely []try
	for _, t := range tries {
		wrong := slices.IndexFunc(t.found, func(f finding) bool { return f.Want != nil && len(f.Path) == len(at) })
		switch {
		case t.form == false:
		case wrong < 0:
			likely = append(likely, t)
		default:
			types = appendNew(types, t.found[wrong].Want...)
		}
	}
	if len(likely) > 1 {
		likely = e.told(likely, v, at)
	}
	switch {
	case len(likely) == 1:
		return likely[0].found
	case len(likely) > 1:
		if common := shared(likely); len(common) > 0 {
			return common
		}
		return []finding{summary(likely, len(tries), at)}
	case len(types) > 0:
		return []finding{wrongType(types, v, at)}
	}
	return []finding{problem(at, "not allowed")}
}

func appendNew(list []string, items ...string) []string {
	for _, item := range items {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// told narrows the forms by a property that tells them apart: one with an enum
// or const in each. The value itself may be what has the enum or const.
func (e explainer) told(tries []try, v any, at []string) []try {
	if merged, ok := mergeAllowed(tries, v, at); ok {
		return merged
	}
	object, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if slices.ContainsFunc(tries, func(t try) bool { return !e.tells(t.form, key) }) {
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

// tells reports whether a form has an enum or const for a property.
func (e explainer) tells(form any, key string) bool {
	s, _ := e.resolved(form).(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	property, _ := e.resolved(properties[key]).(map[string]any)
	return len(allowedValues(property)) > 0
}

// resolved follows references, of which there are no loops in place.
func (e explainer) resolved(schema any) any {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return e.resolved(target(e.root, ref))
	}
	return schema
}

// mergeAllowed makes one list of the values that the forms allow at a path, if
// the value there is in none of them.
func mergeAllowed(tries []try, v any, here []string) ([]try, bool) {
	var allowed []any
	for _, t := range tries {
		list := allowedAt(t, here)
		if list == nil {
			return nil, false
		}
		allowed = append(allowed, list...)
	}
	return []try{{found: []finding{wrongValue(valueList(allowed), v, here)}}}, true
}

func allowedAt(t try, here []string) []any {
	for _, f := range t.found {
		if f.allowed != nil && slices.Equal(f.Path, here) {
			return f.allowed
		}
	}
	return nil
}

// shared are the findings of all forms: right whichever form was meant.
func shared(tries []try) []finding {
	common := tries[0].found
	for _, t := range tries[1:] {
		common = slices.DeleteFunc(slices.Clone(common), func(f finding) bool {
			return !slices.ContainsFunc(t.found, func(g finding) bool { return f.String() == g.String() })
		})
	}
	return common
}

// summary says for the first few forms what each is missing.
func summary(tries []try, forms int, at []string) finding {
	const shown = 3
	var parts []string
	for i, t := range tries[:min(shown, len(tries))] {
		f := t.found[0]
		reason := f.Text
		if path := strings.TrimPrefix(joinPath(f.Path[len(at):]), "."); path != "" {
			reason = path + ": " + reason
		}
		parts = append(parts, fmt.Sprintf("(%d) %s", i+1, clip(reason, 100)))
	}
	if len(tries) > shown {
		parts = append(parts, "…")
	}
	return problem(at, "expected one of %d forms: %s", forms, strings.Join(parts, " "))
}

// unevaluated checks the members that no other keyword has looked at.
func (e explainer) unevaluated(s map[string]any, v any, at []string) (found []finding) {
	rest, ok := s["unevaluatedProperties"]
	members := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		members = v
	case []any:
		rest, ok = s["unevaluatedItems"]
		for i, item := range v {
			members[strconv.Itoa(i)] = item
		}
	}
	if !ok {
		return nil
	}
	others := maps.Clone(s)
	delete(others, "unevaluatedProperties")
	delete(others, "unevaluatedItems")
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if !e.evaluates(others, v, key) {
			found = append(found, e.find(rest, members[key], below(at, key))...)
		}
	}
	return found
}
