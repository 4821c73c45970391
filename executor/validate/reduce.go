package validate

import (
	"errors"
	"fmt"

	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

// reduce turns a schema into rules. It drops everything that cannot be judged, which
// may widen what the schema accepts but never narrows it.
func reduce(s *schema.Schema) (root *rule, err error) {
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
	lengths := map[*rule]int{}
	for _, rule := range r.rules {
		r.inPlaceLength(rule, lengths)
	}
	return root, r.err
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
	out := &rule{never: n.Kind() == 'f', size: len(n.Raw())}
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
		inner := &rule{size: out.size}
		out.anyOf = []*rule{inner, {types: typeNames{"null"}}}
		out = inner
		r.losses++
	}
	before := r.losses
	if alone := r.reference(out, n); alone {
		return
	}
	format, _ := n.Get("format").String()
	out.format = formats[format]
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
	r.defaults(out, n)
	r.strictLimits(out, n)
	r.items(out, n)
	r.dependencies(out, n.Get("dependencies"))
	relax(out, n, widened)
	out.enumKeys = keysOf(out.enum)
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
