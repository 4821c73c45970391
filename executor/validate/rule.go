package validate

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"mcpx/internal/schema"
)

// rule is a schema reduced to the keywords that are judged. References are
// pointers, so rules may form circles. The zero rule accepts everything.
type rule struct {
	never bool // the schema false
	named bool // a reference leads here
	size  int  // bytes of the schema

	ref                 *rule
	allOf, anyOf, oneOf []*rule
	not                 *rule
	condition           *rule // if
	then, otherwise     *rule

	types    typeNames
	constant constant
	enum     []any
	enumKeys map[string]bool // the values of enum, canonical

	properties                   map[string]*rule
	patternProperties            []patternProperty // sorted by pattern
	additionalProperties         *rule
	unevaluatedProperties        *rule
	propertyNames                *rule
	required                     []string
	dependentRequired            map[string][]string
	dependentSchemas             map[string]*rule
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
	format               *format // noted, not judged

	minimum, maximum, exclusiveMinimum, exclusiveMaximum json.Number
	multipleOf                                           positive
}

// These are types of their own because their keywords take other values.
type (
	typeNames []string
	constant  []any // the one value
	positive  json.Number
)

// patternProperty is a rule for all properties whose names match.
type patternProperty struct {
	pattern *pattern
	rule    *rule
}

// pattern is a regular expression, compiled.
type pattern struct {
	*regexp.Regexp
	written    string // as in the schema
	size       int    // instructions
	categories int    // of Unicode
}

// keyword is a row of the keywords. The type of its field decides how it is read and
// written.
type keyword struct {
	since schema.Draft    // the first draft that has it
	field func(*rule) any // a pointer to the field
}

// since2019 is the first of the drafts that are treated alike: 2019-09 is rewritten as
// 2020-12.
const since2019 = schema.Draft2019

// keywords are the keywords that are judged, together with references, items and
// dependencies, which reducer reads apart. All others are dropped: annotations
// and vocabularies of other tools. Formats are kept for notes.
var keywords = map[string]keyword{
	"allOf": {0, func(r *rule) any { return &r.allOf }},
	"anyOf": {0, func(r *rule) any { return &r.anyOf }},
	"oneOf": {0, func(r *rule) any { return &r.oneOf }},
	"not":   {0, func(r *rule) any { return &r.not }},
	"if":    {schema.Draft7, func(r *rule) any { return &r.condition }},
	"then":  {schema.Draft7, func(r *rule) any { return &r.then }},
	"else":  {schema.Draft7, func(r *rule) any { return &r.otherwise }},

	"type":  {0, func(r *rule) any { return &r.types }},
	"const": {schema.Draft6, func(r *rule) any { return &r.constant }},
	"enum":  {0, func(r *rule) any { return &r.enum }},

	"properties":            {0, func(r *rule) any { return &r.properties }},
	"patternProperties":     {0, func(r *rule) any { return &r.patternProperties }},
	"additionalProperties":  {0, func(r *rule) any { return &r.additionalProperties }},
	"unevaluatedProperties": {since2019, func(r *rule) any { return &r.unevaluatedProperties }},
	"propertyNames":         {schema.Draft6, func(r *rule) any { return &r.propertyNames }},
	"required":              {0, func(r *rule) any { return &r.required }},
	"dependentRequired":     {since2019, func(r *rule) any { return &r.dependentRequired }},
	"dependentSchemas":      {since2019, func(r *rule) any { return &r.dependentSchemas }},
	"minProperties":         {0, func(r *rule) any { return &r.minProperties }},
	"maxProperties":         {0, func(r *rule) any { return &r.maxProperties }},

	"unevaluatedItems": {since2019, func(r *rule) any { return &r.unevaluatedItems }},
	"contains":         {schema.Draft6, func(r *rule) any { return &r.contains }},
	"minContains":      {since2019, func(r *rule) any { return &r.minContains }},
	"maxContains":      {since2019, func(r *rule) any { return &r.maxContains }},
	"minItems":         {0, func(r *rule) any { return &r.minItems }},
	"maxItems":         {0, func(r *rule) any { return &r.maxItems }},
	"uniqueItems":      {0, func(r *rule) any { return &r.uniqueItems }},

	"pattern":   {0, func(r *rule) any { return &r.pattern }},
	"minLength": {0, func(r *rule) any { return &r.minLength }},
	"maxLength": {0, func(r *rule) any { return &r.maxLength }},

	"minimum":          {0, func(r *rule) any { return &r.minimum }},
	"maximum":          {0, func(r *rule) any { return &r.maximum }},
	"exclusiveMinimum": {0, func(r *rule) any { return &r.exclusiveMinimum }},
	"exclusiveMaximum": {0, func(r *rule) any { return &r.exclusiveMaximum }},
	"multipleOf":       {0, func(r *rule) any { return &r.multipleOf }},
}

// inPlace returns the rules that apply to the same value as r.
func (r *rule) inPlace() []*rule {
	list := slices.Concat([]*rule{r.ref, r.not, r.condition, r.then, r.otherwise}, r.allOf, r.anyOf, r.oneOf)
	return slices.AppendSeq(list, maps.Values(r.dependentSchemas))
}
