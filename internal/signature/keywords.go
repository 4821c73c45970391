package signature

import (
	"slices"
	"strconv"
)

var jsonTypes = []string{"string", "number", "integer", "boolean", "null", "object", "array"}

// meant is the type that a schema without one has in its author's mind, by its keywords.
var meant = []struct {
	key   string
	types []string
}{
	{"properties", []string{"object"}}, {"required", []string{"object"}},
	{"additionalProperties", []string{"object"}}, {"patternProperties", []string{"object"}},
	{"items", []string{"array"}}, {"prefixItems", []string{"array"}},
}

// typesOf returns the JSON types that a schema allows: those it names, else the inherited ones, else those that are
// meant. Without any of these it returns nil.
func typesOf(n *node, inherited []string) []string {
	if types := namedTypes(n.get("type")); types != nil {
		return types
	}
	if inherited != nil {
		return inherited
	}
	for _, m := range meant {
		if v := n.get(m.key); v.isObject() || v.isArray() {
			return m.types
		}
	}
	return nil
}

// namedTypes returns the types a "type" keyword names, or nil if it names one that does not exist.
func namedTypes(n *node) []string {
	if s, ok := n.str(); ok {
		if i := slices.Index(jsonTypes, s); i >= 0 {
			return jsonTypes[i : i+1]
		}
		return nil
	}
	if !n.isArray() {
		return nil
	}
	var types []string
	for _, m := range n.members {
		s, _ := m.value.str()
		if !slices.Contains(jsonTypes, s) {
			return nil
		}
		types = append(types, s)
	}
	return types
}

// own returns the type that a schema's own keywords give, without those that combine schemas.
func (b *builder) own(n *node, types []string) *typ {
	if v := n.get("const"); v != nil {
		return literalOf(v, maxLiteralDepth)
	}
	if values := n.list("enum"); len(values) > 0 {
		return enumOf(values, types)
	}
	if types == nil {
		return unknown
	}
	if len(types) == 1 {
		return b.ofType(n, types[0])
	}
	all := make([]*typ, len(types))
	for i, name := range types {
		all[i] = b.ofType(n, name)
	}
	return unionOf(all)
}

func (b *builder) ofType(n *node, name string) *typ {
	switch name {
	case "object":
		return b.object(n)
	case "array":
		return b.list(n)
	case "null":
		return null
	}
	if note := noteOf(n, name); note != "" {
		return &typ{text: name, note: note}
	}
	return words[name]
}

// words are the types that most parameters have.
var words = map[string]*typ{
	"string": {text: "string"}, "number": {text: "number"}, "integer": {text: "integer"}, "boolean": {text: "boolean"},
}

func (b *builder) object(n *node) *typ {
	t := &typ{kind: object, rest: b.otherKeys(n)}
	required := make(map[string]bool)
	for _, m := range n.list("required") {
		if name, ok := m.value.str(); ok {
			required[name] = true
		}
	}
	if properties := n.get("properties"); properties.isObject() {
		t.props = make([]prop, 0, len(properties.members))
		for _, m := range properties.members {
			p := prop{name: m.key, typ: b.schema(m.value, nil), required: required[m.key], value: defaultOf(m.value)}
			if p.typ != never || p.required {
				t.props = append(t.props, p)
			}
			delete(required, m.key)
		}
	}
	for _, m := range n.list("required") {
		if name, _ := m.value.str(); required[name] {
			t.props = append(t.props, prop{name: name, typ: t.otherwise(), required: true})
			delete(required, name)
		}
	}
	if len(t.props) == 0 && t.rest == nil && !n.get("additionalProperties").isFalse() {
		return free
	}
	return t
}

// otherwise is the type of a key that is required but not described.
func (t *typ) otherwise() *typ {
	if t.rest == nil {
		return unknown
	}
	return t.rest
}

// otherKeys returns the type of keys that are not among the properties, or nil if they may hold anything or nothing.
func (b *builder) otherKeys(n *node) *typ {
	var types []*typ
	additional := n.get("additionalProperties")
	if additional == nil {
		return nil
	}
	types = append(types, b.schema(additional, nil))
	if patterns := n.get("patternProperties"); patterns.isObject() {
		types = append(types, b.schemas(patterns.members, nil)...)
	}
	if t := unionOf(types); t != unknown && t != never {
		return t
	}
	return nil
}

// defaultOf writes a default. That of null says no more than that the parameter is optional.
func defaultOf(n *node) string {
	if s := value(n.get("default")); s != "null" {
		return s
	}
	return ""
}

func (b *builder) list(n *node) *typ {
	t := &typ{kind: list, note: noteOf(n, "array")}
	items, leading := n.get("items"), n.list("prefixItems")
	if items.isArray() {
		items, leading = n.get("additionalItems"), items.members
	}
	t.rest = unknown
	if items != nil {
		t.rest = b.schema(items, nil)
	}
	if len(leading) == 0 {
		return t
	}
	t.parts = b.schemas(leading[:min(len(leading), maxMembers)], nil)
	t.note = ""
	t.least = min(integer(n.get("minItems"), 0), len(t.parts))
	switch {
	case len(leading) > maxMembers:
		t.rest = unknown
	case t.rest == never || integer(n.get("maxItems"), len(leading)+1) <= len(leading):
		t.rest = nil
	}
	return t
}

// integer reads a small count.
func integer(n *node, otherwise int) int {
	if n.isNumber() {
		if i, err := strconv.Atoi(n.raw); err == nil && i >= 0 {
			return i
		}
	}
	return otherwise
}

// enumOf returns the union of an enum's values, without those that a type beside it rules out. If it rules out all, the
// values are what was meant.
func enumOf(values []member, types []string) *typ {
	all := make([]*typ, 0, len(values))
	for _, m := range values {
		if t := literalOf(m.value, maxLiteralDepth); allowed(t, types) {
			all = append(all, t)
		}
	}
	if len(all) == 0 && types != nil {
		return enumOf(values, nil)
	}
	return unionOf(all)
}

func allowed(t *typ, types []string) bool {
	base := t.base()
	return types == nil || base == "" || slices.Contains(types, base) || base == "number" && slices.Contains(types, "integer")
}

const maxLiteralDepth = 3

// literalOf returns the type of one value, or of its like if it is long.
func literalOf(n *node, depth int) *typ {
	switch {
	case n.raw == "null":
		return null
	case n.isObject():
		t := &typ{kind: object}
		if depth == 0 {
			return free
		}
		for _, m := range n.members {
			t.props = append(t.props, prop{name: m.key, typ: literalOf(m.value, depth-1), required: true})
		}
		return t
	case n.isArray():
		t := &typ{kind: list}
		if depth == 0 || len(n.members) > maxMembers {
			return &typ{kind: list, rest: unknown}
		}
		for _, m := range n.members {
			t.parts = append(t.parts, literalOf(m.value, depth-1))
		}
		t.least = len(t.parts)
		return t
	}
	text := compact(n)
	if len(text) > maxLiteral {
		return &typ{text: literalBase(text)}
	}
	return &typ{kind: literal, text: text}
}
