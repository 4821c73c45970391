package validate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

// reduce turns a schema into a rule. It drops everything that cannot be judged,
// which may widen what the schema accepts but never narrows it. cheap reports that
// a check takes at most the size of the schema times the size of the value.
func reduce(s *schema.Schema) (root *rule, cheap bool, err error) {
	r := newReducer(s)
	root = r.run()
	if r.err == nil && r.misjudged() {
		r = newReducer(s)
		r.pessimistic = true
		root = r.run()
	}
	if r.err == nil && r.innerID && r.followed {
		r.err = errors.New("references next to an inner $id")
	}
	cheap = len(r.rules) <= maxInlineNodes
	lengths := map[*rule]int{}
	for _, rule := range r.rules {
		r.inPlaceLength(rule, lengths)
		cheap = cheap && !rule.costly()
	}
	return root, cheap, r.err
}

// reducer makes the rules of one schema.
type reducer struct {
	document    *schema.Schema
	draft       schema.Draft
	oneResource bool // no schema below the root has an $id

	rules   map[rawjson.Node]*rule
	widened map[*rule]bool // finished rules; true: they accept more than their schema
	open    map[*rule]bool // rules that were needed before they were finished

	patterns     map[string]*pattern // by their text in Go
	patternSteps int

	pessimistic bool  // take unfinished rules to be widened
	innerID     bool  // a schema below the root that counts has an $id
	followed    bool  // there are references
	err         error // the first reason not to judge at all
}

func newReducer(s *schema.Schema) *reducer {
	_, oneResource := s.References()
	return &reducer{
		document: s, draft: s.Draft(), oneResource: oneResource,
		rules: map[rawjson.Node]*rule{}, widened: map[*rule]bool{}, open: map[*rule]bool{}, patterns: map[string]*pattern{},
	}
}

func (r *reducer) run() *rule {
	root, err := r.document.Root()
	if err == nil && !isSchema(root) {
		err = errors.New("not a JSON Schema")
	}
	r.err = err
	out, _ := r.rule(root)
	return out
}

// misjudged reports whether a rule was widened after others had taken it for exact,
// because it was not finished yet.
func (r *reducer) misjudged() bool {
	for rule := range r.open {
		if r.widened[rule] {
			return true
		}
	}
	return false
}

func (r *reducer) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func isSchema(n rawjson.Node) bool { return n.Kind() == '{' || n.Kind() == 't' || n.Kind() == 'f' }

// rule reduces one schema. weak reports that the rule accepts more than the schema.
func (r *reducer) rule(n rawjson.Node) (out *rule, weak bool) {
	if r.err != nil || !isSchema(n) {
		return &rule{}, true
	}
	if known := r.rules[n]; known != nil {
		weak, finished := r.widened[known]
		if !finished {
			r.open[known] = true
			weak = r.pessimistic
		}
		return known, weak
	}
	out = &rule{never: n.Kind() == 'f'}
	r.rules[n] = out
	if n.Kind() == '{' {
		weak = r.fill(out, n)
	}
	r.widened[out] = weak
	return out, weak
}

// fill reads the keywords of a schema.
func (r *reducer) fill(out *rule, n rawjson.Node) (weak bool) {
	target := out
	nullable := n.Get("nullable").Kind() == 't' // as in OpenAPI
	if nullable {
		target = &rule{}
		out.anyOf = []*rule{target, {types: []string{"null"}}}
	}
	widened := map[string]bool{}
	if !r.reference(target, n, widened) {
		for _, k := range keywords {
			if value := n.Get(k.name); !value.IsZero() && r.draft >= k.since {
				ok, weak := r.read(k.field(target), value)
				widened[k.name] = !ok || weak
			}
		}
		r.special(target, n, widened)
		maps.DeleteFunc(widened, func(_ string, weak bool) bool { return !weak })
		relax(target, n, widened)
	}
	format := n.Get("format").Kind() // an annotation here, an assertion elsewhere
	return nullable || len(widened) > 0 || format != 0 && format != 'n'
}

// reference reads $ref and $dynamicRef, and gives the schema up for keywords that
// change what they mean. alone reports that there is nothing else to read: up to
// draft 7, a $ref hides its siblings.
func (r *reducer) reference(out *rule, n rawjson.Node, widened map[string]bool) (alone bool) {
	if _, ok := n.Get("$recursiveRef").String(); ok {
		r.fail("uses $recursiveRef")
	}
	root, _ := r.document.Root()
	if _, ok := n.Get(r.document.IDKeyword()).String(); ok && n != root {
		r.innerID = true
	}
	reference, isRef := n.Get("$ref").String()
	if dynamic, ok := n.Get("$dynamicRef").String(); ok {
		// In a document that is one resource, it means the same as a $ref.
		if !n.Get("$ref").IsZero() || r.draft < schema.Draft2020 || !r.oneResource {
			r.fail("uses $dynamicRef")
		}
		reference, isRef = dynamic, true
	}
	if !isRef {
		widened["$ref"] = !n.Get("$ref").IsZero()
		return false
	}
	target, err := r.document.Resolve(reference)
	if err != nil {
		r.fail("reference %s %w", show(reference), err)
		return true
	}
	r.followed = true
	var weak bool
	out.ref, weak = r.rule(target)
	out.ref.named = true
	if weak {
		widened["$ref"] = true
	}
	return r.draft <= schema.Draft7
}

// read reads the value of a keyword into its field. ok is false if it is not what
// the keyword takes; then the field stays empty.
func (r *reducer) read(field any, n rawjson.Node) (ok, weak bool) {
	switch field := field.(type) {
	case **rule:
		if ok = isSchema(n); ok {
			*field, weak = r.rule(n)
		}
	case *[]*rule:
		*field, weak = r.list(n.Elements())
		ok = len(*field) > 0
	case *map[string]*rule:
		*field, weak = r.byName(n)
		ok = n.Kind() == '{'
	case *[]string:
		*field = appendNew(nil, schema.Strings(n)...)
		ok, weak = n.Kind() == '[', len(*field) < n.Len()
	case *[]any:
		values, _ := r.value(n).([]any)
		*field = distinct(values)
		ok = len(*field) > 0
	case **int:
		*field, ok = r.count(n)
	case *json.Number:
		*field, ok = r.value(n).(json.Number)
	case **pattern:
		text, _ := n.String()
		*field, ok = r.pattern(text)
	case *bool:
		*field, ok = n.Kind() == 't', n.Kind() == 't' || n.Kind() == 'f'
	}
	return ok, weak
}

func (r *reducer) list(schemas []rawjson.Node) (list []*rule, weak bool) {
	for _, n := range schemas {
		sub, weakened := r.rule(n)
		list = append(list, sub)
		weak = weak || weakened
	}
	return list, weak
}

func (r *reducer) byName(n rawjson.Node) (rules map[string]*rule, weak bool) {
	for name, member := range n.Members() {
		sub, weakened := r.rule(member)
		if rules == nil {
			rules = map[string]*rule{}
		}
		rules[name] = sub
		weak = weak || weakened
	}
	return rules, weak
}

// value decodes a value. A number that is out of range gives the schema up.
func (r *reducer) value(n rawjson.Node) any {
	value, err := Decode(n.Raw())
	if err == nil {
		_, err = measure(value, maxSchemaDepth, maxSchemaNodes)
	}
	if err != nil {
		r.fail("%w", err)
		return nil
	}
	return value
}

func (r *reducer) count(n rawjson.Node) (*int, bool) {
	number, ok := r.value(n).(json.Number)
	if !ok {
		return nil, false
	}
	exact := rational(number)
	if !exact.IsInt() || !exact.Num().IsInt64() || exact.Sign() < 0 {
		return nil, false
	}
	count := int(exact.Num().Int64())
	return &count, true
}

// special reads the keywords that take more than their field.
func (r *reducer) special(out *rule, n rawjson.Node, widened map[string]bool) {
	if value := n.Get("const"); !value.IsZero() && r.draft >= schema.Draft6 {
		out.constant = []any{r.value(value)}
		widened["const"] = false
	}
	out.types = appendNew(nil, schema.Types(n)...)
	widened["type"] = len(out.types) == 0 && !n.Get("type").IsZero()
	if out.multipleOf != "" && rational(out.multipleOf).Sign() <= 0 {
		out.multipleOf, widened["multipleOf"] = "", true
	}
	for name, limits := range map[string][2]*json.Number{
		"exclusiveMinimum": {&out.minimum, &out.exclusiveMinimum},
		"exclusiveMaximum": {&out.maximum, &out.exclusiveMaximum},
	} {
		on := n.Get(name).Kind() // a boolean in draft 4
		if *limits[0] == "" || on != 't' && on != 'f' {
			continue
		}
		widened[name] = false
		if on == 't' {
			*limits[0], *limits[1] = "", *limits[0]
		}
	}
	r.arrays(out, n, widened)
	r.patternProperties(out, n.Get("patternProperties"), widened)
	r.dependencies(out, n, widened)
}

// arrays reads the keywords that describe the items of an array.
func (r *reducer) arrays(out *rule, n rawjson.Node, widened map[string]bool) {
	first, others := schema.Items(n)
	prefix := n.Get("prefixItems")
	switch {
	case n.Get("items").Kind() == '[':
		widened["items"] = len(first) == 0
	case r.draft < modern:
		first = nil
	case prefix.Kind() != '[' && prefix.Kind() != 'n' && !prefix.IsZero():
		widened["prefixItems"] = true
	}
	if widened["items"] || widened["prefixItems"] {
		return // where the other items begin is not known
	}
	var weak bool
	if out.prefixItems, weak = r.list(first); weak {
		widened["prefixItems"] = true
	}
	if !others.IsZero() {
		ok, weak := r.read(&out.items, others)
		widened["items"] = !ok || weak
	}
}

func (r *reducer) patternProperties(out *rule, n rawjson.Node, widened map[string]bool) {
	if n.IsZero() {
		return
	}
	widened["patternProperties"] = n.Kind() != '{'
	for text, member := range n.Members() {
		pattern, ok := r.pattern(text)
		if !ok {
			widened["patternProperties"] = true
			continue
		}
		sub, weak := r.rule(member)
		out.patternProperties = append(out.patternProperties, patternProperty{pattern, sub})
		widened["patternProperties"] = widened["patternProperties"] || weak
	}
	slices.SortFunc(out.patternProperties, func(a, b patternProperty) int { return cmp.Compare(a.pattern.String(), b.pattern.String()) })
}

// dependencies reads the keywords that make demands on objects with a property.
func (r *reducer) dependencies(out *rule, n rawjson.Node, widened map[string]bool) {
	for _, k := range []struct {
		name           string
		since          schema.Draft
		names, schemas bool // what it takes
	}{{"dependencies", 0, true, true}, {"dependentRequired", modern, true, false}, {"dependentSchemas", modern, false, true}} {
		value := n.Get(k.name)
		if value.IsZero() || r.draft < k.since {
			continue
		}
		widened[k.name] = value.Kind() != '{'
		start := len(out.dependencies)
		for property, member := range value.Members() {
			demand := dependency{property: property}
			weak := false
			switch isList := member.Kind() == '['; {
			case isList && k.names:
				demand.names = appendNew(nil, schema.Strings(member)...)
			case k.schemas:
				demand.rule, weak = r.rule(member)
			default:
				widened[k.name] = true
				continue
			}
			widened[k.name] = widened[k.name] || weak
			out.dependencies = append(out.dependencies, demand)
		}
		slices.SortFunc(out.dependencies[start:], func(a, b dependency) int { return cmp.Compare(a.property, b.property) })
	}
}

// relax undoes the harm of widening: under these keywords a schema that accepts
// more makes the whole accept less.
func relax(out *rule, n rawjson.Node, widened map[string]bool) {
	if widened["not"] {
		out.not = nil
	}
	if widened["if"] {
		out.condition, out.then, out.otherwise = nil, nil, nil
	}
	if widened["contains"] {
		out.maxContains = nil
	}
	if widened["oneOf"] && len(out.oneOf) > 0 {
		out.allOf = append(out.allOf, &rule{anyOf: out.oneOf})
		out.oneOf = nil
	}
	if incomplete(n.Get("properties"), len(out.properties)) || incomplete(n.Get("patternProperties"), len(out.patternProperties)) {
		out.additionalProperties = nil // which properties are left is not known
	}
	if len(widened) > 0 {
		out.unevaluatedProperties, out.unevaluatedItems = nil, nil
	}
}

// incomplete reports whether a keyword that should hold schemas by name holds more
// than the n that were read.
func incomplete(value rawjson.Node, n int) bool {
	switch value.Kind() {
	case 0, 'n':
		return false
	case '{':
		return n < value.Len()
	}
	return true
}

// inPlaceLength returns how many rules in a row apply to the same value, from r on.
// It fails for loops and long chains: gojsonschema would overflow the stack, and
// nothing can recover from that.
func (r *reducer) inPlaceLength(from *rule, lengths map[*rule]int) int {
	const unfinished = -1
	length, met := lengths[from]
	if met && length == unfinished {
		r.fail("a reference loop")
	}
	if met || r.err != nil {
		return length
	}
	lengths[from] = unfinished
	for _, next := range from.inPlace() {
		if next != nil {
			length = max(length, 1+r.inPlaceLength(next, lengths))
		}
	}
	if length > maxSchemaDepth {
		r.fail("more than %d references in a row", maxSchemaDepth)
	}
	lengths[from] = length
	return length
}

// rational returns the exact value of a number that was measured before. The empty
// number is zero.
func rational(n json.Number) *big.Rat {
	exact, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return new(big.Rat)
	}
	return exact
}

// distinct returns the values without repetitions.
func distinct(values []any) (list []any) {
	seen := map[string]bool{}
	for _, value := range values {
		if key := canonical(value); !seen[key] {
			seen[key] = true
			list = append(list, value)
		}
	}
	return list
}

// appendNew appends the items that the list does not have yet.
func appendNew(list []string, items ...string) []string {
	for _, item := range items {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}
