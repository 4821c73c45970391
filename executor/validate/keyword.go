package validate

import (
	"cmp"
	"encoding/json"
	"slices"

	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

// read reads the value of a keyword into its field. It reports whether the value is
// what the keyword takes.
func (r *reducer) read(field any, n rawjson.Node) (ok bool) {
	switch field := field.(type) {
	case **rule:
		if ok = isSchema(n); ok {
			*field = r.rule(n)
		}
	case *[]*rule:
		*field = r.list(n.Elements())
		ok = len(*field) > 0
	case *map[string]*rule:
		*field = r.byName(n)
		ok = n.Kind() == '{'
	case *[]patternProperty:
		*field = r.byPattern(n)
		ok = n.Kind() == '{'
	case *map[string][]string:
		ok = n.Kind() == '{'
		for name, member := range n.Members() {
			ok = member.Kind() == '[' && ok
			add(field, name, appendNew(nil, schema.Strings(member)...))
		}
	case *[]string:
		*field = appendNew(nil, schema.Strings(n)...)
		ok = n.Kind() == '[' && len(*field) == n.Len()
	case *typeNames:
		*field = appendNew(nil, schema.Types(n)...)
		ok = len(*field) > 0
	case *constant:
		*field, ok = constant{r.value(n)}, true
	case *[]any:
		values, _ := r.value(n).([]any)
		*field = distinct(values)
		ok = len(*field) > 0
	case **int:
		*field = r.count(n)
		ok = *field != nil
	case *json.Number:
		*field, ok = r.value(n).(json.Number)
	case *positive:
		number, _ := r.value(n).(json.Number)
		if ok = rational(number).Sign() > 0; ok {
			*field = positive(number)
		}
	case **pattern:
		text, _ := n.String()
		*field, ok = r.pattern(text)
	case *bool:
		*field, ok = n.Kind() == 't', n.Kind() == 't' || n.Kind() == 'f'
	}
	return ok
}

// add sets a member of a map that may be nil: an empty map stays nil.
func add[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}

func (r *reducer) list(schemas []rawjson.Node) (list []*rule) {
	for _, n := range schemas {
		list = append(list, r.rule(n))
	}
	return list
}

func (r *reducer) byName(n rawjson.Node) (rules map[string]*rule) {
	for name, member := range n.Members() {
		add(&rules, name, r.rule(member))
	}
	return rules
}

func (r *reducer) byPattern(n rawjson.Node) (rules []patternProperty) {
	for text, member := range n.Members() {
		pattern, ok := r.pattern(text)
		if !ok {
			r.losses++
			continue
		}
		rules = append(rules, patternProperty{pattern, r.rule(member)})
	}
	slices.SortFunc(rules, func(a, b patternProperty) int { return cmp.Compare(a.pattern.String(), b.pattern.String()) })
	return rules
}

// value decodes a value. A number that is out of range gives the schema up.
func (r *reducer) value(n rawjson.Node) any {
	value, err := decode(n.Raw(), maxSchemaNodes)
	if err != nil {
		r.fail("%w", err)
	}
	return value
}

// count returns the value of a count such as minLength, nil if it is none.
func (r *reducer) count(n rawjson.Node) *int {
	number, ok := r.value(n).(json.Number)
	exact := rational(number)
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() || exact.Sign() < 0 {
		return nil
	}
	count := int(exact.Num().Int64())
	return &count
}

// items reads the keywords that describe the items of an array.
func (r *reducer) items(out *rule, n rawjson.Node) {
	first, others := schema.Items(n)
	known := true
	switch prefix := n.Get("prefixItems").Kind(); {
	case n.Get("items").Kind() == '[':
		known = len(first) > 0
	case r.draft < since2019:
		first = nil
	default:
		known = prefix == '[' || prefix == 'n' || prefix == 0
	}
	out.prefixItems = r.list(first)
	// If known is false, nobody can tell where the other items begin.
	if !known || !others.IsZero() && !r.read(&out.items, others) {
		r.losses++
	}
}

// dependencies reads the older keyword for dependentRequired and dependentSchemas.
func (r *reducer) dependencies(out *rule, n rawjson.Node) {
	if !n.IsZero() && n.Kind() != '{' {
		r.losses++
	}
	for property, member := range n.Members() {
		if member.Kind() == '[' {
			add(&out.dependentRequired, property, appendNew(out.dependentRequired[property], schema.Strings(member)...))
			continue
		}
		sub := r.rule(member)
		if other := out.dependentSchemas[property]; other != nil {
			sub = &rule{allOf: []*rule{other, sub}}
		}
		add(&out.dependentSchemas, property, sub)
	}
}

// defaults drops required properties that have a default: a caller may leave them out,
// and the server fills them in.
func (r *reducer) defaults(out *rule, n rawjson.Node) {
	var required []string
	for _, name := range out.required {
		if n.Get("properties").Get(name).Get("default").IsZero() {
			required = append(required, name)
		} else {
			r.losses++
		}
	}
	out.required = required
}

// strictLimits reads exclusiveMinimum and exclusiveMaximum as draft 4 has them: as a
// boolean that belongs to the limit.
func (r *reducer) strictLimits(out *rule, n rawjson.Node) {
	for keyword, fields := range map[string]struct{ limit, strict *json.Number }{
		"exclusiveMinimum": {&out.minimum, &out.exclusiveMinimum},
		"exclusiveMaximum": {&out.maximum, &out.exclusiveMaximum},
	} {
		on := n.Get(keyword).Kind()
		if *fields.limit == "" || on != 't' && on != 'f' {
			continue
		}
		r.losses-- // read could do nothing with it
		if on == 't' {
			*fields.limit, *fields.strict = "", *fields.limit
		}
	}
}

// appendNew appends the items that the list does not have yet.
func appendNew(list []string, items ...string) []string {
	known := map[string]bool{}
	for _, item := range list {
		known[item] = true
	}
	for _, item := range items {
		if !known[item] {
			known[item] = true
			list = append(list, item)
		}
	}
	return list
}
