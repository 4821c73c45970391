package validate

import (
	"encoding/json"
	"math/big"
	"slices"
)

// shape is the form that a keyword's value must have.
type shape int

const (
	oneSchema shape = iota
	schemaList
	schemaOrList // items, before 2020-12
	schemaMap
	patternMap   // schemas by pattern
	dependentMap // schemas or lists of names
	reference
	typeNames
	names
	namesMap
	values
	literal
	pattern
	number
	positive
	count
	boolean
)

// keyword is a row of the keywords that are judged.
type keyword struct {
	shape   shape
	since   int  // the first draft that knows it
	inPlace bool // its schemas apply to the same value
	costly  bool // it can make a check grow faster than schema × arguments
}

// modern stands for every draft after 7: 2019-09 is rewritten as 2020-12.
const modern = 2020

// keywords are all that is judged. Whatever is not here is left out of a
// reduced schema: annotations, formats, vocabularies of other tools.
var keywords = map[string]keyword{
	"$ref":  {shape: reference, inPlace: true, costly: true},
	"allOf": {shape: schemaList, inPlace: true},
	"anyOf": {shape: schemaList, inPlace: true},
	"oneOf": {shape: schemaList, inPlace: true},
	"not":   {shape: oneSchema, inPlace: true},
	"if":    {shape: oneSchema, inPlace: true, since: 7},
	"then":  {shape: oneSchema, inPlace: true, since: 7},
	"else":  {shape: oneSchema, inPlace: true, since: 7},

	"type":  {shape: typeNames},
	"enum":  {shape: values},
	"const": {shape: literal, since: 6},

	"properties":            {shape: schemaMap},
	"patternProperties":     {shape: patternMap, costly: true},
	"additionalProperties":  {shape: oneSchema},
	"unevaluatedProperties": {shape: oneSchema, since: modern, costly: true},
	"propertyNames":         {shape: oneSchema, since: 6},
	"required":              {shape: names},
	"minProperties":         {shape: count},
	"maxProperties":         {shape: count},
	"dependencies":          {shape: dependentMap, inPlace: true},
	"dependentRequired":     {shape: namesMap, since: modern},
	"dependentSchemas":      {shape: schemaMap, inPlace: true, since: modern},

	"items":            {shape: schemaOrList},
	"additionalItems":  {shape: oneSchema},
	"prefixItems":      {shape: schemaList, since: modern},
	"unevaluatedItems": {shape: oneSchema, since: modern, costly: true},
	"contains":         {shape: oneSchema, since: 6},
	"minContains":      {shape: count, since: modern},
	"maxContains":      {shape: count, since: modern},
	"minItems":         {shape: count},
	"maxItems":         {shape: count},
	"uniqueItems":      {shape: boolean, costly: true},

	"pattern":   {shape: pattern},
	"minLength": {shape: count},
	"maxLength": {shape: count},

	"minimum":          {shape: number},
	"maximum":          {shape: number},
	"exclusiveMinimum": {shape: number},
	"exclusiveMaximum": {shape: number},
	"multipleOf":       {shape: positive},
}

var jsonTypes = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// typeList reads the value of "type"; nil if it names anything unknown.
func typeList(v any) []any {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var known []any
	for _, item := range list {
		name, ok := item.(string)
		if !ok || !slices.Contains(jsonTypes, name) {
			return nil
		}
		if !slices.Contains(known, item) {
			known = append(known, item)
		}
	}
	return known
}

// nameList reads a list of property names, without repetitions.
func nameList(items []any) []any {
	list := []any{}
	for _, item := range items {
		if _, ok := item.(string); ok && !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// valueList reads the value of "enum", without repetitions.
func valueList(v any) []any {
	items, _ := v.([]any)
	seen := map[string]bool{}
	var list []any
	for _, item := range items {
		if key := canonical(item); !seen[key] {
			seen[key] = true
			list = append(list, item)
		}
	}
	return list
}

// rational is the exact value of a number; nil for anything else.
func rational(v any) *big.Rat {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return nil
	}
	return r
}

// whole is the value of a count such as minLength.
func whole(v any) (n int, ok bool) {
	r := rational(v)
	if r == nil || !r.IsInt() || !r.Num().IsInt64() || r.Sign() < 0 {
		return 0, false
	}
	return int(r.Num().Int64()), true
}
