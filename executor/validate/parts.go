package validate

import (
	"context"
	"maps"
	"slices"
)

// part is a rule for the arguments or for one of their members. Arguments that are valid match
// all parts of the schema.
type part struct {
	rule  *rule
	value any
	key   string
	at    place
}

// checkParts checks as many parts of the schema as maxSteps allow. It always fails, because the
// arguments were not checked completely. The verdict has the problems that were found.
func (e *engine) checkParts(ctx context.Context, arguments any) (Verdict, error) {
	m := meter{ctx: ctx, left: maxSteps}
	some := m.affordable(e.rule.parts(arguments, map[*rule]bool{}))
	verdict, err := (&engine{some, compileRule(some)}).check(ctx, arguments)
	if err != nil {
		return Verdict{}, err
	}
	return Verdict{Problems: verdict.Problems}, errTooLong
}

// affordable returns a rule of those parts for which there are enough steps. Each part may take
// an equal share of the steps that the parts before it have left over.
func (m *meter) affordable(parts []part) *rule {
	some := &rule{}
	for i, p := range parts {
		total, before := m.left, m.wrong
		share := total / (len(parts) - i)
		m.left = share
		fits := m.rule(p.rule, p.value, p.at)
		m.left = total - share + max(m.left, 0)
		switch {
		case !fits:
			m.wrong = before
		case p.at == place{}:
			some.allOf = append(some.allOf, p.rule)
		case some.properties[p.key] == nil:
			add(&some.properties, p.key, p.rule)
		default:
			add(&some.properties, p.key, &rule{allOf: []*rule{some.properties[p.key], p.rule}})
		}
	}
	return some
}

// parts returns the parts of a rule for a value, each rule once. It leaves out
// unevaluatedProperties and unevaluatedItems, which depend on all others.
func (r *rule) parts(value any, seen map[*rule]bool) (list []part) {
	if r == nil || seen[r] {
		return nil
	}
	seen[r] = true
	for _, rule := range r.split() {
		if !isZero(*rule) {
			list = append(list, part{rule: rule, value: value})
		}
	}
	object, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if property := r.properties[key]; property != nil {
			list = append(list, part{property, object[key], key, place{}.below(key)})
		}
	}
	for _, rule := range append([]*rule{r.ref}, r.allOf...) {
		list = append(list, rule.parts(value, seen)...)
	}
	return list
}

// split returns rules that together accept what r accepts without ref, allOf, and the rules of
// its properties.
func (r *rule) split() []*rule {
	plain := r.withoutUnevaluated() // the keywords that apply no schema to the object or its members
	plain.named, plain.ref, plain.allOf, plain.anyOf, plain.oneOf, plain.not = false, nil, nil, nil, nil, nil
	plain.condition, plain.then, plain.otherwise, plain.dependentSchemas = nil, nil, nil, nil
	plain.properties, plain.patternProperties, plain.additionalProperties, plain.propertyNames = nil, nil, nil, nil
	return []*rule{
		plain, r.othersOnly(), {patternProperties: r.patternProperties}, {propertyNames: r.propertyNames},
		{anyOf: r.anyOf}, {oneOf: r.oneOf}, {not: r.not}, {condition: r.condition, then: r.then, otherwise: r.otherwise},
		{dependentSchemas: r.dependentSchemas},
	}
}

// othersOnly returns additionalProperties and the names to which it does not apply.
func (r *rule) othersOnly() *rule {
	others := &rule{additionalProperties: r.additionalProperties}
	if others.additionalProperties == nil {
		return others
	}
	for name := range r.properties {
		add(&others.properties, name, &rule{})
	}
	for _, p := range r.patternProperties {
		others.patternProperties = append(others.patternProperties, patternProperty{p.pattern, &rule{}})
	}
	return others
}
