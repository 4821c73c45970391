package validate

import (
	"maps"
	"slices"
	"strconv"
)

func (e explainer) object(s, v map[string]any, at []string) (found []finding) {
	for _, name := range stringList(s["required"]) {
		if _, ok := v[name]; !ok {
			found = append(found, problem(below(at, name), "required"))
		}
	}
	found = append(found, e.dependent(s, v, at)...)
	found = append(found, counted(s, "Properties", len(v), at)...)
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if len(found) >= enough {
			break
		}
		found = append(found, e.member(s, v, key, at)...)
	}
	return found
}

// member checks one property, its name and its value.
func (e explainer) member(s, v map[string]any, key string, at []string) (found []finding) {
	here := below(at, key)
	if names, ok := s["propertyNames"]; ok {
		for _, f := range e.find(names, key, here) {
			f.Text, f.Want = "as a name: "+f.Text, nil
			found = append(found, f)
		}
	}
	schemas := e.declared(s, key)
	for _, schema := range schemas {
		found = append(found, e.find(schema, v[key], here)...)
	}
	rest, closed := s["additionalProperties"]
	switch {
	case len(schemas) > 0 || !closed:
		return found
	case rest == false:
		return append(found, unknown(s, v, key, here))
	}
	return append(found, e.find(rest, v[key], here)...)
}

// declared are the schemas that properties and patternProperties have for a key.
func (e explainer) declared(s map[string]any, key string) (schemas []any) {
	properties, _ := s["properties"].(map[string]any)
	if schema, ok := properties[key]; ok {
		schemas = append(schemas, schema)
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, re := range slices.Sorted(maps.Keys(patterns)) {
		if e.patternMatches(re, key) {
			schemas = append(schemas, patterns[re])
		}
	}
	return schemas
}

// unknown names the properties that could have been meant: those not given.
func unknown(s, v map[string]any, key string, at []string) finding {
	properties, _ := s["properties"].(map[string]any)
	var known, free []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		known = append(known, clip(name, maxShown))
		if _, given := v[name]; !given {
			free = append(free, name)
		}
	}
	if near, ok := nearest(key, free); ok {
		return problem(at, "unknown property; did you mean %s?", show(near))
	}
	if len(known) == 0 {
		return problem(at, "unknown property; none are allowed")
	}
	return problem(at, "unknown property; known: %s", commaList(known))
}

// dependent checks what other properties ask for by being there.
func (e explainer) dependent(s, v map[string]any, at []string) (found []finding) {
	for _, keyword := range []string{"dependencies", "dependentRequired", "dependentSchemas"} {
		needs, _ := s[keyword].(map[string]any)
		for _, given := range slices.Sorted(maps.Keys(needs)) {
			if _, ok := v[given]; !ok {
				continue
			}
			names, isNames := needs[given].([]any)
			if !isNames {
				found = append(found, e.find(needs[given], v, at)...)
			}
			for _, name := range stringList(names) {
				if _, ok := v[name]; !ok {
					found = append(found, problem(below(at, name), "required with %s", show(given)))
				}
			}
		}
	}
	return found
}

func (e explainer) array(s map[string]any, v []any, at []string) []finding {
	found := counted(s, "Items", len(v), at)
	if s["uniqueItems"] == true {
		found = append(found, repeated(v, at)...)
	}
	found = append(found, e.contained(s, v, at)...)
	head, rest := tuple(s)
	for i, item := range v {
		if len(found) >= enough {
			break
		}
		schema := rest
		if i < len(head) {
			schema = head[i]
		} else if rest == false {
			return append(found, problem(at, "expected at most %s, got %d", quantity(len(head), "Items"), len(v)))
		}
		found = append(found, e.find(schema, item, below(at, strconv.Itoa(i)))...)
	}
	return found
}

// tuple returns the schemas of the first items and that of all others, which
// 2020-12 has renamed.
func tuple(s map[string]any) (head []any, rest any) {
	if head, ok := s["items"].([]any); ok {
		return head, s["additionalItems"]
	}
	head, _ = s["prefixItems"].([]any)
	return head, s["items"]
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

func (e explainer) contained(s map[string]any, v []any, at []string) []finding {
	schema, ok := s["contains"]
	if !ok {
		return nil
	}
	n := 0
	for _, item := range v {
		if e.matches(schema, item) {
			n++
		}
	}
	least, ok := whole(s["minContains"])
	if !ok {
		least = 1
	}
	if n < least {
		return []finding{problem(at, "expected at least %s like %s, got %d", quantity(least, "Items"), show(schema), n)}
	}
	if most, ok := whole(s["maxContains"]); ok && n > most {
		return []finding{problem(at, "expected at most %s like %s, got %d", quantity(most, "Items"), show(schema), n)}
	}
	return nil
}
