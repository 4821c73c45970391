package validate

import (
	"encoding/json"
	"regexp"

	"mcpx/internal/schema"
)

// rule is a schema reduced to the keywords that are judged. References are
// pointers, so rules may form circles. The zero rule accepts everything.
type rule struct {
	never bool // the schema false
	named bool // a reference leads here

	ref                 *rule
	allOf, anyOf, oneOf []*rule
	not                 *rule
	condition           *rule // if
	then, otherwise     *rule

	types []string
	// Each list has the values that are allowed: of const one, of enum some.
	constant, enum []any

	properties                   map[string]*rule
	patternProperties            []patternProperty
	additionalProperties         *rule
	unevaluatedProperties        *rule
	propertyNames                *rule
	required                     []string
	dependencies                 []dependency
	minProperties, maxProperties *int

	prefixItems              []*rule
	items                    *rule // those after prefixItems
	unevaluatedItems         *rule
	contains                 *rule
	minContains, maxContains *int
	minItems, maxItems       *int
	uniqueItems              bool

	pattern              *pattern
	minLength, maxLength *int

	minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf json.Number
}

// patternProperty is a rule for all properties whose names match.
type patternProperty struct {
	pattern *pattern
	rule    *rule
}

// dependency is a demand on objects that have a property.
type dependency struct {
	property string
	names    []string // further properties that must be there
	rule     *rule    // nil: there are only names
}

// pattern is a regular expression, compiled.
type pattern struct {
	*regexp.Regexp
	written string // as in the schema
}

// keyword is a row of the keywords that are read and written by the type of their
// field.
type keyword struct {
	name  string
	since schema.Draft // the first draft that has it
	field func(*rule) any
}

// modern is the first of the drafts that are treated alike: 2019-09 is rewritten as
// 2020-12.
const modern = schema.Draft2019

// keywords are the keywords that are judged, together with those that reducer.special
// reads. All others are dropped: annotations, formats, vocabularies of other tools.
var keywords = []keyword{
	{"allOf", 0, func(r *rule) any { return &r.allOf }},
	{"anyOf", 0, func(r *rule) any { return &r.anyOf }},
	{"oneOf", 0, func(r *rule) any { return &r.oneOf }},
	{"not", 0, func(r *rule) any { return &r.not }},
	{"if", schema.Draft7, func(r *rule) any { return &r.condition }},
	{"then", schema.Draft7, func(r *rule) any { return &r.then }},
	{"else", schema.Draft7, func(r *rule) any { return &r.otherwise }},

	{"enum", 0, func(r *rule) any { return &r.enum }},

	{"properties", 0, func(r *rule) any { return &r.properties }},
	{"additionalProperties", 0, func(r *rule) any { return &r.additionalProperties }},
	{"unevaluatedProperties", modern, func(r *rule) any { return &r.unevaluatedProperties }},
	{"propertyNames", schema.Draft6, func(r *rule) any { return &r.propertyNames }},
	{"required", 0, func(r *rule) any { return &r.required }},
	{"minProperties", 0, func(r *rule) any { return &r.minProperties }},
	{"maxProperties", 0, func(r *rule) any { return &r.maxProperties }},

	{"unevaluatedItems", modern, func(r *rule) any { return &r.unevaluatedItems }},
	{"contains", schema.Draft6, func(r *rule) any { return &r.contains }},
	{"minContains", modern, func(r *rule) any { return &r.minContains }},
	{"maxContains", modern, func(r *rule) any { return &r.maxContains }},
	{"minItems", 0, func(r *rule) any { return &r.minItems }},
	{"maxItems", 0, func(r *rule) any { return &r.maxItems }},
	{"uniqueItems", 0, func(r *rule) any { return &r.uniqueItems }},

	{"pattern", 0, func(r *rule) any { return &r.pattern }},
	{"minLength", 0, func(r *rule) any { return &r.minLength }},
	{"maxLength", 0, func(r *rule) any { return &r.maxLength }},

	{"minimum", 0, func(r *rule) any { return &r.minimum }},
	{"maximum", 0, func(r *rule) any { return &r.maximum }},
	{"exclusiveMinimum", 0, func(r *rule) any { return &r.exclusiveMinimum }},
	{"exclusiveMaximum", 0, func(r *rule) any { return &r.exclusiveMaximum }},
	{"multipleOf", 0, func(r *rule) any { return &r.multipleOf }},
}

// inPlace returns the rules that apply to the same value as r.
func (r *rule) inPlace() []*rule {
	list := append(append(append([]*rule{r.ref, r.not, r.condition, r.then, r.otherwise}, r.allOf...), r.anyOf...), r.oneOf...)
	for _, d := range r.dependencies {
		list = append(list, d.rule)
	}
	return list
}

// costly reports whether checking r can take more than the size of the schema times
// the size of the value.
func (r *rule) costly() bool {
	return r.ref != nil || len(r.patternProperties) > 0 || r.uniqueItems || r.unevaluatedProperties != nil || r.unevaluatedItems != nil
}
