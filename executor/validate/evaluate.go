package validate

import "strconv"

// evaluates reports whether a schema that v matches has looked at the member
// key of v, which is what unevaluatedProperties and unevaluatedItems ask.
func (e explainer) evaluates(schema, v any, key string) bool {
	s, ok := schema.(map[string]any)
	if !ok {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		if e.evaluatesProperty(s, key) {
			return true
		}
	case []any:
		if e.evaluatesItem(s, v, key) {
			return true
		}
	}
	for _, sub := range e.applied(s, v) {
		if e.matches(sub, v) && e.evaluates(sub, v, key) {
			return true
		}
	}
	return false
}

func (e explainer) evaluatesProperty(s map[string]any, key string) bool {
	_, additional := s["additionalProperties"]
	_, unevaluated := s["unevaluatedProperties"]
	return additional || unevaluated || len(e.declared(s, key)) > 0
}

func (e explainer) evaluatesItem(s map[string]any, v []any, key string) bool {
	head, rest := tuple(s)
	_, unevaluated := s["unevaluatedItems"]
	i, _ := strconv.Atoi(key)
	if rest != nil || unevaluated || i < len(head) {
		return true
	}
	contains, ok := s["contains"]
	return ok && e.matches(contains, v[i])
}

// applied are the schemas that s applies to the same value.
func (e explainer) applied(s map[string]any, v any) []any {
	var subs []any
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[name].([]any)
		subs = append(subs, list...)
	}
	if ref, ok := s["$ref"].(string); ok {
		subs = append(subs, target(e.root, ref))
	}
	if condition, ok := s["if"]; ok {
		if e.matches(condition, v) {
			subs = append(subs, condition, s["then"])
		} else {
			subs = append(subs, s["else"])
		}
	}
	object, _ := v.(map[string]any)
	for _, name := range []string{"dependencies", "dependentSchemas"} {
		needs, _ := s[name].(map[string]any)
		for given, schema := range needs {
			if _, ok := object[given]; ok {
				subs = append(subs, schema)
			}
		}
	}
	return subs
}
