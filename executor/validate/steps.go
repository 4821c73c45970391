package validate

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// gojsonschema takes no context, so a check cannot be stopped. Its work is counted before it
// starts instead: meter walks through the rules and the value as the engines do, and the
// check is made only if it surely takes no more than maxSteps. The count depends on nothing
// else, so the same arguments always get the same verdict.

// maxSteps bounds one check. A step takes about 10 ns.
const maxSteps = 50_000_000

// What the engines do takes this many steps.
const (
	visitSteps   = 100   // compare a rule with a value, without its members
	problemSteps = 500   // report a problem, without its path
	numberSteps  = 300   // read a number exactly
	powerSteps   = 5_000 // read its exponent
	regexpSteps  = 1_000 // compile a pattern, without its instructions
	shownSteps   = 16    // show a byte of a schema
)

var errTooLong = errors.New("took too long")

// meter counts the steps of one check.
type meter struct {
	ctx    context.Context
	left   int
	visits int
}

// place is where a value is.
type place struct {
	path  int // bytes of the path
	level int // how many rules are being checked, each inside the one before
}

func (p place) below(key string) place { return place{p.path + len(key) + 1, p.level + 1} }

// inner returns the place of the same value under another rule.
func (p place) inner() place { return place{p.path, p.level + 1} }

// countSteps returns how many steps a check takes at most. It fails if these are more than
// limit, or if ctx ends.
func countSteps(ctx context.Context, r *rule, value any, limit int) (steps int, err error) {
	m := meter{ctx: ctx, left: limit}
	ok := m.rule(r, value, place{})
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if !ok {
		return 0, errTooLong
	}
	return limit - m.left, nil
}

// spend counts steps and reports whether more are left.
func (m *meter) spend(steps int) bool {
	m.left -= min(steps, m.left+1) // no overflow
	return m.left >= 0
}

// problems counts the steps of reporting n problems.
func (m *meter) problems(n int, p place) bool {
	return m.spend(n * (problemSteps + 4*p.path + 2*p.level))
}

// rule counts the steps of comparing a value with a rule. Like all methods below, it reports
// whether steps are left.
func (m *meter) rule(r *rule, v any, p place) bool {
	if r == nil {
		return true
	}
	if m.visits++; m.visits%1024 == 0 && m.ctx.Err() != nil || !m.spend(visitSteps) {
		return false
	}
	switch {
	case r.never:
		return m.problems(1, p)
	case r.ref != nil && !m.rule(r.ref, v, p.inner()):
		return false
	case !m.scalar(v):
		return false
	case len(r.types) > 0 && !hasType(v, r.types):
		return m.problems(1, p) && m.shown(v)
	}
	return m.allowed(r, v, p) && m.inside(r, v, p) && m.forms(r, v, p) && m.unevaluated(r, v, p)
}

// scalar counts the steps of reading a number.
func (m *meter) scalar(v any) bool {
	number, ok := v.(json.Number)
	if !ok {
		return true
	}
	if strings.ContainsAny(number.String(), "eE") && !m.spend(powerSteps) {
		return false
	}
	return m.spend(numberSteps + 20*len(number))
}

// shown counts the steps of showing the beginning of a value.
func (m *meter) shown(v any) bool {
	object, _ := v.(map[string]any)
	return m.spend(20 * len(object)) // the keys are sorted
}

// whole counts the steps of writing a value as JSON and reading it again.
func (m *meter) whole(v any) bool {
	text, _ := v.(string)
	if !m.spend(visitSteps+4*len(text)) || !m.scalar(v) {
		return false
	}
	for key, member := range members(v) {
		if !m.spend(4*len(key)) || !m.whole(member) {
			return false
		}
	}
	return true
}

// allowed counts the steps of enum and const.
func (m *meter) allowed(r *rule, v any, p place) bool {
	if len(r.constant) == 0 && len(r.enum) == 0 {
		return true
	}
	if !m.whole(v) || !m.spend(len(r.enum)/4+len(r.constant)*r.size) {
		return false
	}
	if r.refusal(v) == nil {
		return true
	}
	text, _ := v.(string)
	list := min(r.size, maxEagerBytes) * (10 + min(len(text), maxCompared)/4)
	return m.problems(1, p) && m.shown(v) && m.spend(list+r.size*(8+2*p.level))
}

// inside counts the steps of the keywords for one type of values.
func (m *meter) inside(r *rule, v any, p place) bool {
	switch v := v.(type) {
	case string:
		if r.minLength == nil && r.maxLength == nil && r.pattern == nil {
			return true
		}
		return m.spend(len(v)) && (r.pattern == nil || m.match(r.pattern, v)) && m.problems(len(r.explainText(v, nil)), p)
	case json.Number:
		return m.number(r, v, p)
	case []any:
		return m.array(r, v, p)
	case map[string]any:
		return m.object(r, v, p)
	}
	return true
}

func (m *meter) number(r *rule, v json.Number, p place) bool {
	isLimited := false
	for _, limit := range [...]json.Number{r.minimum, r.maximum, r.exclusiveMinimum, r.exclusiveMaximum, json.Number(r.multipleOf)} {
		if limit == "" {
			continue
		}
		if isLimited = true; !m.scalar(limit) {
			return false
		}
	}
	return !isLimited || m.problems(len(r.explainNumber(v, nil)), p)
}

// match counts the steps of matching a pattern.
func (m *meter) match(pattern *pattern, text string) bool {
	return m.spend(pattern.size * (1 + len(text)))
}

func (m *meter) array(r *rule, v []any, p place) bool {
	if !m.problems(len(counted(r.minItems, r.maxItems, len(v), "item", nil)), p) {
		return false
	}
	if r.uniqueItems && (!m.whole(v) || !m.problems(len(v)-len(distinct(v)), p)) {
		return false
	}
	if r.contains != nil && (!m.problems(1, p) || !m.spend(shownSteps*r.contains.size)) {
		return false
	}
	for i, item := range v {
		here := p.below("00000")
		if !m.rule(r.contains, item, here) || !m.rule(r.ofItem(i), item, here) {
			return false
		}
	}
	return true
}

func (m *meter) object(r *rule, v map[string]any, p place) bool {
	if !m.spend(len(r.required)+len(r.properties)) || !m.problems(len(counted(r.minProperties, r.maxProperties, len(v), "property", nil)), p) {
		return false
	}
	if !m.required(r.required, v, p) {
		return false
	}
	for key, member := range v {
		if !m.required(r.dependentRequired[key], v, p) || !m.rule(r.dependentSchemas[key], v, p.inner()) || !m.member(r, key, member, p.below(key)) {
			return false
		}
	}
	return true
}

// required counts the steps of looking for properties.
func (m *meter) required(names []string, v map[string]any, p place) bool {
	for _, name := range names {
		_, given := v[name]
		if !given && !m.problems(1, p.below(name)) {
			return false
		}
	}
	return m.spend(4 * len(names))
}

func (m *meter) member(r *rule, key string, member any, p place) bool {
	if !m.spend(visitSteps+len(r.properties)) || !m.patterns(r, key) {
		return false
	}
	if r.propertyNames != nil && (!m.problems(1, p) || !m.rule(r.propertyNames, key, p)) {
		return false
	}
	declared := r.declared(key)
	for _, rule := range declared {
		if !m.rule(rule, member, p) {
			return false
		}
	}
	switch others := r.additionalProperties; {
	case len(declared) > 0 || others == nil:
		return true
	case others.never:
		return m.problems(1, p) && m.unknown(r)
	default:
		return m.rule(others, member, p)
	}
}

// patterns counts the steps of matching patternProperties, which gojsonschema compiles for
// each key.
func (m *meter) patterns(r *rule, key string) bool {
	for _, p := range r.patternProperties {
		if !m.spend(regexpSteps+10*p.pattern.size) || !m.match(p.pattern, key) {
			return false
		}
	}
	return true
}

// unknown counts the steps of looking for the name that an unknown property was meant to have.
func (m *meter) unknown(r *rule) bool {
	for name := range r.properties {
		if !m.spend(20 + 6*len(name)) {
			return false
		}
	}
	return true
}

// forms counts the steps of the keywords that apply other schemas to the same value.
func (m *meter) forms(r *rule, v any, p place) bool {
	for _, list := range [...][]*rule{r.allOf, r.anyOf, r.oneOf} {
		if len(list) > 0 && !m.choice(list, v, p) {
			return false
		}
	}
	if r.not != nil && (!m.problems(1, p) || !m.spend(shownSteps*r.not.size)) {
		return false
	}
	if r.condition != nil && !m.problems(1, p) {
		return false
	}
	inner := p.inner()
	return m.rule(r.not, v, inner) && m.rule(r.condition, v, inner) && m.rule(r.then, v, inner) && m.rule(r.otherwise, v, inner)
}

// choice counts the steps of finding out which of several forms a value has.
func (m *meter) choice(forms []*rule, v any, p place) bool {
	object, _ := v.(map[string]any)
	return m.problems(1, p) && m.spend(20*len(forms)*len(object)) && m.all(forms, v, p.inner())
}

func (m *meter) all(rules []*rule, v any, p place) bool {
	return !slices.ContainsFunc(rules, func(r *rule) bool { return !m.rule(r, v, p) })
}

// unevaluated counts the steps of finding the members that no other keyword has evaluated.
func (m *meter) unevaluated(r *rule, v any, p place) bool {
	others := r.unevaluatedProperties
	if _, isArray := v.([]any); isArray {
		others = r.unevaluatedItems
	}
	if others == nil {
		return true
	}
	for key, member := range members(v) {
		if !m.evaluates(r, v, key, p.inner()) || !m.rule(others, member, p.below(key)) {
			return false
		}
	}
	return true
}

// evaluates counts the steps of rule.evaluates.
func (m *meter) evaluates(r *rule, v any, key string, p place) bool {
	if !m.spend(visitSteps) || !m.patterns(r, key) || !m.rule(r.condition, v, p.inner()) {
		return false
	}
	if array, ok := v.([]any); ok && r.contains != nil {
		i, _ := strconv.Atoi(key)
		if !m.rule(r.contains, array[i], p.inner()) {
			return false
		}
	}
	for _, rule := range r.inPlace() {
		if rule != nil && (!m.rule(rule, v, p.inner()) || !m.evaluates(rule, v, key, p.inner())) {
			return false
		}
	}
	return true
}
