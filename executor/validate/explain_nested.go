package validate

import (
	"maps"
	"slices"
	"strconv"
)

func (r *rule) explainObject(v map[string]any, at []string) (found []finding) {
	for _, name := range r.required {
		if _, ok := v[name]; !ok {
			found = append(found, missing(at, name, "required"))
		}
	}
	found = append(found, r.explainDependent(v, at)...)
	found = append(found, counted(r.minProperties, r.maxProperties, len(v), unit{"property", "properties"}, at)...)
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
	found := counted(r.minItems, r.maxItems, len(v), items, at)
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
			return append(found, problem(at, "expected at most %s, got %d", items.of(len(r.prefixItems)), len(v)))
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
	n := 0
	for _, item := range v {
		if r.contains.matches(item) {
			n++
		}
	}
	least := 1
	if r.minContains != nil {
		least = *r.minContains
	}
	like := " like " + showRule(r.contains)
	return counted(&least, r.maxContains, n, unit{items.one + like, items.many + like}, at)
}
