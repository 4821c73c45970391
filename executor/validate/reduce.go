package validate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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

	rules  map[rawjson.Node]*rule
	exact  map[*rule]bool // the finished rules; false: they accept more than their schema
	open   map[*rule]bool // rules that were needed before they were finished
	losses int            // counts what was dropped, and uses of rules that are not exact

	patterns     map[string]*pattern // by their text in the schema
	patternSteps int

	pessimistic bool  // take unfinished rules for inexact
	innerID     bool  // a schema that counts, below the root, has an $id
	followed    bool  // there are references
	err         error // the first reason not to judge at all
}

func newReducer(s *schema.Schema) *reducer {
	_, oneResource := s.References()
	return &reducer{
		document: s, draft: s.Draft(), oneResource: oneResource,
		rules: map[rawjson.Node]*rule{}, exact: map[*rule]bool{}, open: map[*rule]bool{}, patterns: map[string]*pattern{},
	}
}

func (r *reducer) run() *rule {
	root, err := r.document.Root()
	if err == nil && !isSchema(root) {
		err = errors.New("not a JSON Schema")
	}
	r.err = err
	return r.rule(root)
}

// misjudged reports whether a rule that others had taken for exact, because it was
// not finished yet, is not.
func (r *reducer) misjudged() bool {
	for rule := range r.open {
		if !r.exact[rule] {
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

// rule reduces one schema.
func (r *reducer) rule(n rawjson.Node) *rule {
	if r.err != nil || !isSchema(n) {
		r.losses++
		return &rule{}
	}
	if known := r.rules[n]; known != nil {
		exact, finished := r.exact[known]
		if !finished {
			r.open[known] = true
		}
		if finished && !exact || !finished && r.pessimistic {
			r.losses++
		}
		return known
	}
	out := &rule{never: n.Kind() == 'f'}
	r.rules[n] = out
	before := r.losses
	if n.Kind() == '{' {
		r.fill(out, n)
	}
	r.exact[out] = r.losses == before
	return out
}

// fill reads the keywords of a schema.
func (r *reducer) fill(out *rule, n rawjson.Node) {
	if format := n.Get("format").Kind(); format != 0 && format != 'n' {
		r.losses++ // an annotation here, an assertion elsewhere
	}
	if n.Get("nullable").Kind() == 't' { // as in OpenAPI
		inner := &rule{}
		out.anyOf = []*rule{inner, {types: typeNames{"null"}}}
		out = inner
		r.losses++
	}
	before := r.losses
	if alone := r.reference(out, n); alone {
		return
	}
	widened := map[string]bool{}
	for name, value := range n.Members() {
		k, known := keywords[name]
		if !known || r.draft < k.since {
			continue
		}
		before := r.losses
		if !r.read(k.field(out), value) {
			r.losses++
		}
		if r.losses > before {
			widened[name] = true
		}
	}
	r.strictLimits(out, n)
	r.items(out, n)
	r.dependencies(out, n.Get("dependencies"))
	relax(out, n, widened)
	if r.losses > before {
		out.unevaluatedProperties, out.unevaluatedItems = nil, nil
	}
}

// reference reads $ref and $dynamicRef, and gives the schema up for keywords that
// change what they mean. alone reports that there is nothing else to read: up to
// draft 7, a $ref hides its siblings.
func (r *reducer) reference(out *rule, n rawjson.Node) (alone bool) {
	if _, ok := n.Get("$recursiveRef").String(); ok {
		r.fail("uses $recursiveRef")
	}
	root, _ := r.document.Root()
	if _, ok := n.Get(r.document.IDKeyword()).String(); ok && n != root {
		r.innerID = true
	}
	written := n.Get("$ref")
	if dynamic := n.Get("$dynamicRef"); dynamic.Kind() == '"' {
		// In a document that is one resource, it means the same as a $ref.
		if !written.IsZero() || r.draft < schema.Draft2020 || !r.oneResource {
			r.fail("uses $dynamicRef")
		}
		written = dynamic
	}
	reference, ok := written.String()
	if !ok && !written.IsZero() {
		r.losses++
	}
	if !ok {
		return false
	}
	target, err := r.document.Resolve(reference)
	if err != nil {
		r.fail("reference %s %w", show(reference), err)
		return true
	}
	r.followed = true
	out.ref = r.rule(target)
	out.ref.named = true
	return r.draft <= schema.Draft7
}

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
	case r.draft < modern:
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
