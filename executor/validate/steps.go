package validate

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
)

// gojsonschema takes no context, so a check cannot be stopped. Its work is counted before it
// starts instead: meter walks through the rules and the value as the engines do, and the
// check is made only if it takes no more than maxSteps. The count depends on nothing else, so
// the same arguments always get the same verdict. Like the engines, meter stops at the first
// form of an anyOf that matches, so it also finds out whether the value is valid.

const (
	// maxSteps bounds one check. A step takes about a nanosecond: half of one for some schemas
	// and values, up to three for others.
	maxSteps = 1_000_000_000

	// maxWrong bounds the problems that gojsonschema keeps until the end of a check, about 800
	// bytes each.
	maxWrong = 100_000
)

// What the engines do takes this many steps.
const (
	visitSteps   = 200   // compare a rule with a value, without its members
	memberSteps  = 150   // find the rule of a member
	problemSteps = 2_500 // report a problem, without its path
	numberSteps  = 450   // read a number exactly
	powerSteps   = 1_500 // read its exponent
	valueSteps   = 700   // write a value as JSON and read it again
	regexpSteps  = 2_000 // compile a pattern, without its characters
	limitSteps   = 5_000 // show a limit of a number
	shownSteps   = 4_000 // show the beginning of an array or object
	schemaSteps  = 100   // show a byte of a schema
)

var errTooLong = errors.New("took too long")

// meter counts the steps of one check.
type meter struct {
	ctx    context.Context
	left   int // below zero if there are no more
	wrong  int // problems found so far
	visits int
}

// place is where a value is.
type place struct {
	path  int // bytes of the path
	level int // how many rules are being checked, each inside the one before
	forms int // how many of them are forms of anyOf or oneOf
}

func (p place) below(key string) place { return place{p.path + len(key) + 1, p.level + 1, p.forms} }

// inner returns the place of the same value under another rule.
func (p place) inner() place { return place{p.path, p.level + 1, p.forms} }

// form returns the place of the same value under a form.
func (p place) form() place { return place{p.path, p.level + 1, p.forms + 1} }

// countSteps returns how many steps a check takes. It fails if these are more than limit, or if
// ctx ends.
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

// stop leaves no steps.
func (m *meter) stop() bool {
	m.left = -1
	return false
}

// problems counts the steps of reporting n problems.
func (m *meter) problems(n int, p place) bool {
	if m.wrong += n; m.wrong > maxWrong {
		return m.stop()
	}
	return m.spend(n * (problemSteps + 20*p.path + 40*p.level))
}

// rule counts the steps of comparing a value with a rule, and the problems. Like all methods
// below, it reports whether steps are left.
func (m *meter) rule(r *rule, v any, p place) bool {
	if r == nil {
		return true
	}
	if m.visits++; m.visits%1024 == 0 && m.ctx.Err() != nil {
		return m.stop()
	}
	if !m.spend(visitSteps) {
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

// matches is rule for a rule that the value need not match: it does not count the problems.
func (m *meter) matches(r *rule, v any, p place) (matches, ok bool) {
	before := m.wrong
	ok = m.rule(r, v, p)
	matches = m.wrong == before
	m.wrong = before
	return matches, ok
}

// scalar counts the steps of reading a number.
func (m *meter) scalar(v any) bool {
	number, ok := v.(json.Number)
	if !ok {
		return true
	}
	if hasPower(number) && !m.spend(powerSteps) {
		return false
	}
	return m.spend(numberSteps + 10*len(number))
}

// hasPower reports whether a number is written with an exponent.
func hasPower(n json.Number) bool { return strings.ContainsAny(n.String(), "eE") }

// shown counts the steps of showing the beginning of a value.
func (m *meter) shown(v any) bool {
	switch v := v.(type) {
	case []any:
		return m.spend(shownSteps)
	case map[string]any:
		return m.spend(shownSteps + 150*len(v)) // the keys are sorted
	}
	return true
}

// whole counts the steps of writing a value as JSON and reading it again.
func (m *meter) whole(v any) bool {
	text, _ := v.(string)
	if !m.spend(valueSteps+12*len(text)) || !m.scalar(v) {
		return false
	}
	for key, member := range members(v) {
		if !m.spend(12*len(key)) || !m.whole(member) {
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
	if !m.whole(v) || !m.spend(5*len(r.enum)+r.size/10) {
		return false
	}
	if r.refusal(v) == nil {
		return true
	}
	text, _ := v.(string)
	list := min(r.size, maxEagerBytes) * (40 + min(len(text), maxCompared))
	// The lists of all forms are merged.
	return m.problems(1, p) && m.shown(v) && m.spend((list+15*r.size)*(1+p.forms))
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
	shown := 0
	for _, limit := range [...]json.Number{r.minimum, r.maximum, r.exclusiveMinimum, r.exclusiveMaximum, json.Number(r.multipleOf)} {
		if limit == "" {
			continue
		}
		if !m.scalar(limit) {
			return false
		}
		shown += limitSteps + 300*len(limit)
		if hasPower(limit) {
			shown += 20 * limitSteps
		}
	}
	if shown == 0 {
		return true
	}
	n := len(r.explainNumber(v, nil))
	return n == 0 || m.problems(n, p) && m.spend(shown)
}

// match counts the steps of matching a pattern.
func (m *meter) match(pattern *pattern, text string) bool {
	return m.spend(7 * pattern.size * (1 + len(text)))
}

func (m *meter) array(r *rule, v []any, p place) bool {
	if !m.problems(len(counted(r.minItems, r.maxItems, len(v), "item", nil)), p) {
		return false
	}
	if r.uniqueItems && (!m.whole(v) || !m.problems(len(v)-len(distinct(v)), p)) {
		return false
	}
	if !m.contains(r, v, p) {
		return false
	}
	for i, item := range v {
		if !m.spend(memberSteps) || !m.rule(r.ofItem(i), item, p.below("00000")) {
			return false
		}
	}
	return true
}

// contains counts the steps of looking for the items that an array must contain.
func (m *meter) contains(r *rule, v []any, p place) bool {
	if r.contains == nil {
		return true
	}
	found := r.contained(v, func(item any) bool {
		matches, _ := m.matches(r.contains, item, p.below("00000"))
		return matches
	})
	least, most := r.containLimits()
	if counted(&least, most, found, "item", nil) == nil {
		return m.left >= 0
	}
	return m.problems(1, p) && m.spend(schemaSteps*r.contains.size)
}

func (m *meter) object(r *rule, v map[string]any, p place) bool {
	if !m.spend(15*len(r.properties)) || !m.problems(len(counted(r.minProperties, r.maxProperties, len(v), "property", nil)), p) {
		return false
	}
	if !m.required(r.required, v, p) {
		return false
	}
	unknown := 0
	for key, member := range v {
		here := p.below(key)
		if !m.required(r.dependentRequired[key], v, p) || !m.rule(r.dependentSchemas[key], v, p.inner()) || !m.name(r, key, here) {
			return false
		}
		rules := r.declared(key)
		if len(rules) == 0 && r.additionalProperties != nil {
			rules = []*rule{r.additionalProperties}
			if r.additionalProperties.never {
				unknown++
			}
		}
		if !m.all(rules, member, here) {
			return false
		}
	}
	return m.unknown(r, min(unknown, maxFindings))
}

// required counts the steps of looking for properties.
func (m *meter) required(names []string, v map[string]any, p place) bool {
	for _, name := range names {
		_, given := v[name]
		if !given && !m.problems(1, p.below(name)) {
			return false
		}
	}
	return m.spend(30 * len(names))
}

// name counts the steps of finding the rules for a property, and of checking its name.
func (m *meter) name(r *rule, key string, p place) bool {
	if !m.spend(memberSteps+6*len(r.properties)) || !m.patterns(r, key) {
		return false
	}
	if r.propertyNames == nil {
		return true
	}
	matches, ok := m.matches(r.propertyNames, key, p)
	return ok && (matches || m.problems(1, p))
}

// patterns counts the steps of matching patternProperties, which gojsonschema compiles for
// each key.
func (m *meter) patterns(r *rule, key string) bool {
	for _, p := range r.patternProperties {
		if !m.compile(p.pattern) || !m.match(p.pattern, key) {
			return false
		}
	}
	return true
}

func (m *meter) compile(p *pattern) bool {
	return m.spend(regexpSteps + 150*len(p.written) + 150*p.size + 50_000*p.categories)
}

// unknown counts the steps of looking for the names that n unknown properties were meant to
// have.
func (m *meter) unknown(r *rule, n int) bool {
	if n == 0 {
		return true
	}
	for name := range r.properties {
		if !m.spend(n * (400 + 40*len(name))) {
			return false
		}
	}
	return true
}
