package cli

import (
	"slices"
	"strings"

	"mcpx/internal/rawjson"
)

// parameter is a part of a tool's input schema: what one value may be.
type parameter struct {
	root   []byte // the whole schema, where references lead
	schema []byte // nil: nothing is known
}

// maxSchemas bounds what is looked at for one parameter: references may go in
// circles.
const maxSchemas = 64

// schemas are the parts that speak of the value: the schema itself, what it
// refers to, and its alternatives.
func (p parameter) schemas() [][]byte {
	found := [][]byte{p.schema}
	for i := 0; i < len(found) && len(found) < maxSchemas; i++ {
		for key, value := range rawjson.Members(found[i]) {
			switch key {
			case "$ref", "$dynamicRef":
				if text, ok := rawjson.String(value); ok {
					found = append(found, p.resolve(text))
				}
			case "anyOf", "oneOf", "allOf":
				found = slices.AppendSeq(found, rawjson.Elements(value))
			}
		}
	}
	return found
}

// resolve follows a reference into the schema itself, nil if it leads elsewhere.
func (p parameter) resolve(reference string) []byte {
	path, ok := strings.CutPrefix(reference, "#")
	if !ok {
		return nil
	}
	if path != "" && path[0] != '/' {
		if found := anchored(p.root, path); len(found) == 1 {
			return found[0]
		}
		return nil
	}
	at := p.root
	for _, key := range strings.Split(path, "/")[1:] {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		at = rawjson.Get(at, key)
	}
	return at
}

// anchored are the objects in a schema that an anchor names: one, if it is right.
func anchored(value []byte, name string) (found [][]byte) {
	for key, member := range rawjson.Members(value) {
		if text, _ := rawjson.String(member); text == name && (key == "$anchor" || key == "$dynamicAnchor") {
			found = append(found, value)
		}
		found = append(found, anchored(member, name)...)
	}
	for element := range rawjson.Elements(value) {
		found = append(found, anchored(element, name)...)
	}
	return found
}

// has reports whether the value is an object with that member declared.
func (p parameter) has(key string) bool {
	return slices.ContainsFunc(p.schemas(), func(s []byte) bool {
		return rawjson.Get(rawjson.Get(s, "properties"), key) != nil
	})
}

// member is what a member of the value may be.
func (p parameter) member(key string) parameter {
	for _, s := range p.schemas() {
		if declared := rawjson.Get(rawjson.Get(s, "properties"), key); declared != nil {
			return parameter{p.root, declared}
		}
	}
	return p.within("additionalProperties")
}

// items is what the elements of the value may be.
func (p parameter) items() parameter { return p.within("items") }

func (p parameter) within(keyword string) parameter {
	for _, s := range p.schemas() {
		if inner := rawjson.Get(s, keyword); rawjson.Kind(inner) == '{' {
			return parameter{p.root, inner}
		}
	}
	return parameter{root: p.root}
}

// types are the types that the value may have, as far as the schema says so.
func (p parameter) types() (types []string) {
	for _, s := range p.schemas() {
		for key, value := range rawjson.Members(s) {
			switch key {
			case "type":
				if name, ok := rawjson.String(value); ok {
					types = append(types, name)
				}
				for element := range rawjson.Elements(value) {
					name, _ := rawjson.String(element)
					types = append(types, name)
				}
			case "enum":
				for element := range rawjson.Elements(value) {
					types = append(types, typeOf(element))
				}
			case "const":
				types = append(types, typeOf(value))
			case "properties":
				types = append(types, "object")
			}
		}
	}
	return types
}

// unknown reports whether the value may be anything.
func (p parameter) unknown() bool { return len(p.types()) == 0 }

// is reports whether the value may be of that type.
func (p parameter) is(name string) bool { return slices.Contains(p.types(), name) }

// scalar is a text as the value it stands for: JSON where the schema has no place
// for a text but one for what it reads as, and otherwise a string.
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

// typeOf is the JSON Schema type of a value.
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
