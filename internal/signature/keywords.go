package signature

import (
	"cmp"
	"slices"
	"strconv"

	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

// impliedTypes are the types that keywords imply: their authors left "type" out.
var impliedTypes = []struct {
	keyword string
	types   []string
}{
	{"properties", []string{"object"}}, {"required", []string{"object"}},
	{"additionalProperties", []string{"object"}}, {"patternProperties", []string{"object"}},
	{"items", []string{"array"}}, {"prefixItems", []string{"array"}},
}

// typesOf returns the JSON types that a schema allows: those it names, else the inherited ones, else those that its
// keywords imply, else nil.
func typesOf(n rawjson.Node, inherited []string) []string {
	if types := schema.Types(n.Get("type")); types != nil {
		return types
	}
	if inherited != nil {
		return inherited
	}
	for _, implied := range impliedTypes {
		if k := n.Get(implied.keyword).Kind(); k == '{' || k == '[' {
			return implied.types
		}
	}
	return nil
}

// own returns the type that the keywords of a schema describe, without those that combine schemas.
func (b *builder) own(n rawjson.Node, types []string) *typ {
	if v := n.Get("const"); !v.IsZero() {
		return literalOf(v, maxLiteralDepth)
	}
	if values := n.Get("enum").Elements(); len(values) > 0 {
		return enumOf(values, types)
	}
	if types == nil {
		return unknown
	}
	all := make([]*typ, len(types))
	for i, name := range types {
		all[i] = b.ofType(n, name)
	}
	return unionOf(all)
}

func (b *builder) ofType(n rawjson.Node, name string) *typ {
	switch name {
	case "object":
		return b.object(n)
	case "array":
		return b.list(n)
	case "null":
		return null
	}
	return &typ{text: name, note: noteOf(n, name)}
}

func (b *builder) object(n rawjson.Node) *typ {
	t := &typ{kind: object, rest: b.otherKeys(n)}
	names := schema.Strings(n.Get("required"))
	required := make(map[string]bool, len(names))
	for _, name := range names {
		required[name] = true
	}
	for name, property := range n.Get("properties").Members() {
		isRequired := required[name] && property.Get("default").IsZero()
		p := prop{name: name, typ: told(b.schema(property, nil), property), required: isRequired, value: defaultOf(property)}
		if p.typ != never || p.required {
			t.props = append(t.props, p)
		}
		delete(required, name)
	}
	other := cmp.Or(t.rest, unknown)
	for _, name := range names {
		if required[name] {
			t.props = append(t.props, prop{name: name, typ: other, required: true})
			delete(required, name)
		}
	}
	if len(t.props) == 0 && t.rest == nil && n.Get("additionalProperties").Kind() != 'f' {
		return free
	}
	return t
}

// otherKeys returns the type of keys that are not declared, nil if they may hold anything, or nothing.
func (b *builder) otherKeys(n rawjson.Node) *typ {
	additional := n.Get("additionalProperties")
	if additional.IsZero() {
		return nil
	}
	types := []*typ{b.schema(additional, nil)}
	for _, s := range n.Get("patternProperties").Members() {
		types = append(types, b.schema(s, nil))
	}
	if t := unionOf(types); t != unknown && t != never {
		return t
	}
	return nil
}

// list returns the type of an array. That of a tuple only says which types its elements have.
func (b *builder) list(n rawjson.Node) *typ {
	leading, others := schema.Items(n)
	rest := unknown
	if !others.IsZero() {
		rest = b.schema(others, nil)
	}
	if most, err := strconv.Atoi(string(n.Get("maxItems").Raw())); err == nil && most >= 0 && most <= len(leading) {
		rest = never
	}
	return &typ{kind: list, rest: unionOf(append(b.schemas(leading, nil), rest)), note: noteOf(n, "array")}
}

// enumOf returns the union of an enum's values, without those that the schema's type excludes. If it excludes all of
// them, the type is ignored.
func enumOf(values []rawjson.Node, types []string) *typ {
	all := make([]*typ, 0, len(values))
	for _, v := range values {
		if t := literalOf(v, maxLiteralDepth); allowed(t, types) {
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

// literalOf returns the type of exactly one value, or a wider one if the value is long.
func literalOf(n rawjson.Node, depth int) *typ {
	switch n.Kind() {
	case 'n':
		return null
	case '{':
		if depth == 0 {
			return free
		}
		t := &typ{kind: object}
		for name, value := range n.Members() {
			t.props = append(t.props, prop{name: name, typ: literalOf(value, depth-1), required: true})
		}
		return t
	case '[':
		if depth == 0 || n.Len() > maxMembers {
			return &typ{kind: list, rest: unknown}
		}
		var elements []*typ
		for _, element := range n.Elements() {
			elements = append(elements, literalOf(element, depth-1))
		}
		return &typ{kind: list, rest: unionOf(elements)}
	}
	text := compact(n)
	if len(text) > maxLiteral {
		return &typ{text: literalBase(text)}
	}
	return &typ{kind: literal, text: text}
}
