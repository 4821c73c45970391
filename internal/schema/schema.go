// Package schema reads JSON Schemas: one parsed tree a schema, and one place that
// knows the drafts and resolves references. It judges nothing: package validate
// checks values, package signature writes schemas for people and models.
//
// Schemas come from upstreams and may be malformed or hostile. Nothing is ever
// loaded from outside of a schema.
package schema

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mcpx/internal/rawjson"
)

// MaxBytes limits the size of a schema. No schema that a model could use comes near.
const MaxBytes = 1 << 20

var errSize = errors.New("larger than 1 MB")

// Schema is one JSON Schema. It is parsed on first use and then never changes. It
// is safe for concurrent use.
type Schema struct {
	raw []byte

	parse sync.Once
	root  rawjson.Node
	draft Draft
	err   error

	scan    sync.Once
	anchors map[string]rawjson.Node // names that schemas have besides their place; zero: not exactly one schema
}

// Draft is a version of JSON Schema.
type Draft int

// The drafts that differ in what their keywords mean. A schema that declares no
// known draft counts as the newest.
const (
	Draft4    Draft = 4
	Draft6    Draft = 6
	Draft7    Draft = 7
	Draft2019 Draft = 2019
	Draft2020 Draft = 2020
)

var drafts = map[string]Draft{
	"json-schema.org/draft-03/schema":      Draft4,
	"json-schema.org/draft-04/schema":      Draft4,
	"json-schema.org/draft-06/schema":      Draft6,
	"json-schema.org/draft-07/schema":      Draft7,
	"json-schema.org/draft/2019-09/schema": Draft2019,
}

// New returns the schema in raw, which must not change. No schema, or null, accepts
// everything.
func New(raw []byte) *Schema {
	if rawjson.IsNull(raw) {
		raw = []byte("true")
	}
	return &Schema{raw: raw}
}

// Root returns the whole schema as a tree, or why it cannot be read. Bytes that are
// not UTF-8 become U+FFFD.
func (s *Schema) Root() (rawjson.Node, error) {
	s.parse.Do(func() {
		if len(s.raw) > MaxBytes {
			s.err = errSize
			return
		}
		text := s.raw
		if !utf8.Valid(text) {
			text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
		}
		s.root, s.err = rawjson.Parse(text)
		s.draft = draftOf(s.root)
	})
	return s.root, s.err
}

// Draft returns the draft that the schema declares.
func (s *Schema) Draft() Draft {
	_, _ = s.Root()
	return s.draft
}

func draftOf(root rawjson.Node) Draft {
	dialect, _ := root.Get("$schema").String()
	_, dialect, _ = strings.Cut(strings.TrimSuffix(dialect, "#"), "://")
	if draft, ok := drafts[dialect]; ok {
		return draft
	}
	return Draft2020
}

var typeNames = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// Types returns the JSON types that the value of the keyword "type" names. It
// returns nil if there is none, or if one does not exist.
func Types(value rawjson.Node) []string {
	if name, ok := value.String(); ok {
		if i := slices.Index(typeNames, name); i >= 0 {
			return typeNames[i : i+1 : i+1]
		}
		return nil
	}
	var types []string
	for _, element := range value.Elements() {
		name, _ := element.String()
		if !slices.Contains(typeNames, name) {
			return nil
		}
		types = append(types, name)
	}
	return types
}

// Strings returns the strings of an array, without the other elements.
func Strings(array rawjson.Node) (list []string) {
	for _, element := range array.Elements() {
		if text, ok := element.String(); ok {
			list = append(list, text)
		}
	}
	return list
}

// Items returns the schemas of an array's first elements, and the schema of all
// others. 2020-12 has renamed both keywords.
func Items(schema rawjson.Node) (first []rawjson.Node, others rawjson.Node) {
	items := schema.Get("items")
	if items.Kind() == '[' {
		return items.Elements(), schema.Get("additionalItems")
	}
	return schema.Get("prefixItems").Elements(), items
}
