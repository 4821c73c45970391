package cli

import (
	"slices"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

// parameter is a part of a tool's input schema: it describes one value.
type parameter struct {
	document *schema.Schema // the whole schema, for references
	node     rawjson.Node   // zero: nothing is known
}

func newParameter(s *schema.Schema) parameter {
	root, _ := s.Root()
	return parameter{s, root}
}

// schemas returns all schemas of the value: the schema itself, the targets of its
// references, and its alternatives.
func (p parameter) schemas() []rawjson.Node { return p.document.Alternatives(p.node) }

// has reports whether the value is an object with that member declared.
func (p parameter) has(key string) bool {
	return slices.ContainsFunc(p.schemas(), func(s rawjson.Node) bool { return !s.Get("properties").Get(key).IsZero() })
}

// member returns the parameter for a member of the value.
func (p parameter) member(key string) parameter {
	for _, s := range p.schemas() {
		if declared := s.Get("properties").Get(key); !declared.IsZero() {
			return parameter{p.document, declared}
		}
	}
	return p.within("additionalProperties")
}

// items returns the parameter for the elements of the value.
func (p parameter) items() parameter { return p.within("items") }

func (p parameter) within(keyword string) parameter {
	for _, s := range p.schemas() {
		if inner := s.Get(keyword); inner.Kind() == '{' {
			return parameter{p.document, inner}
		}
	}
	return parameter{document: p.document}
}

// types returns the types that the value may have, as far as the schema says so.
func (p parameter) types() (types []string) {
	for _, s := range p.schemas() {
		types = append(types, schema.Types(s.Get("type"))...)
		for _, value := range append(s.Get("enum").Elements(), s.Get("const")) {
			if !value.IsZero() {
				types = append(types, typeOf(value.Raw()))
			}
		}
		if !s.Get("properties").IsZero() {
			types = append(types, "object")
		}
	}
	return types
}

// unknown reports whether the value may be anything.
func (p parameter) unknown() bool { return len(p.types()) == 0 }

// is reports whether the value may be of that type.
func (p parameter) is(name string) bool { return slices.Contains(p.types(), name) }

// scalar converts a text to a JSON value: to a string if the schema allows one,
// else to the JSON that the text spells if the schema allows that, else to a
// string.
func (p parameter) scalar(text string) []byte {
	raw := []byte(text)
	if !p.unknown() && !p.is("string") && rawjson.Check(raw) == nil {
		kind := typeOf(raw)
		if p.is(kind) || kind == "number" && p.is("integer") || kind == "integer" && p.is("number") {
			return raw
		}
	}
	return rawjson.AppendString(nil, text)
}

// typeOf returns the JSON Schema type of a value.
func typeOf(value []byte) string {
	switch rawjson.Kind(value) {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if strings.ContainsAny(string(value), ".eE") {
		return "number"
	}
	return "integer"
}
