package signature

import (
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

// builder turns the schemas of one document into types.
type builder struct {
	document *schema.Schema
	root     rawjson.Node
	defs     map[rawjson.Node]*def // the targets of references
	refs     map[string]rawjson.Node
	depth    int
}

const (
	maxDepth = 64 // nesting of schemas; deeper ones are shown as unknown
	maxAllOf = 64
)

// rootName is the name of all parameters together, where an input schema refers back to its root.
const rootName = "Arguments"

func newBuilder(s *schema.Schema, root rawjson.Node) *builder {
	b := &builder{document: s, root: root}
	references, ok := s.References()
	if len(references) == 0 || !ok {
		return b
	}
	b.defs = make(map[rawjson.Node]*def)
	b.refs = make(map[string]rawjson.Node, len(references))
	for _, reference := range references {
		b.register(reference)
	}
	return b
}

// register counts one use of a reference.
func (b *builder) register(reference string) {
	target, seen := b.refs[reference]
	if !seen {
		target, _ = b.document.Resolve(reference)
		b.refs[reference] = target
	}
	if target.IsZero() {
		return
	}
	d := b.defs[target]
	if d == nil {
		d = &def{pointer: reference}
		if !strings.HasPrefix(reference, "#/") {
			d.pointer = "#" + b.root.Pointer(target)
		}
		if !isDefinition(d.pointer) {
			d.uses++
		}
		b.defs[target] = d
	}
	d.uses++
}

// isDefinition reports whether a pointer leads into a place for definitions, which are used only by reference.
func isDefinition(pointer string) bool {
	parent := pointer[:max(strings.LastIndexByte(pointer, '/'), 0)]
	return strings.HasSuffix(parent, "/$defs") || strings.HasSuffix(parent, "/definitions")
}

// schema returns the type of the values that n accepts. types are the JSON types of the schema around an anyOf, oneOf or
// allOf: they hold for members that name none.
func (b *builder) schema(n rawjson.Node, types []string) *typ {
	if b.depth == maxDepth {
		return unknown
	}
	b.depth++
	t := b.place(n, types)
	b.depth--
	return t
}

// place returns the type of n itself, or the name of its definition.
func (b *builder) place(n rawjson.Node, types []string) *typ {
	d := b.defs[n]
	if d == nil {
		return b.build(n, types)
	}
	if !d.built {
		d.built = true
		d.typ = unalias(b.build(n, nil))
		d.short = d.isShort()
	}
	if d.typ != nil && d.typ.kind == word {
		return d.typ
	}
	if d.typ != nil && d.uses == 1 && !d.inline {
		d.inline = true
		return d.typ
	}
	return &typ{kind: named, def: d}
}

// unalias returns the type behind a definition that only refers to another definition. One that refers to itself is
// unknown.
func unalias(t *typ) *typ {
	if t.kind != named {
		return t
	}
	if t.def.typ == nil {
		return unknown
	}
	return t.def.typ
}

func (b *builder) build(n rawjson.Node, types []string) *typ {
	if n.Kind() == 'f' || acceptsAll(n.Get("not")) {
		return never
	}
	if n.Kind() != '{' {
		return unknown
	}
	t := unknown
	ref, isRef := n.Get("$ref").String()
	if isRef {
		t = b.reference(ref)
	}
	if ref, ok := n.Get("$dynamicRef").String(); ok && b.document.Draft() >= schema.Draft2020 {
		t = intersect(t, b.reference(ref)) // the same as a $ref, because there is no inner $id
	}
	if !isRef || b.document.Draft() > schema.Draft7 { // up to draft 7, a $ref hides its siblings
		t = b.constrain(t, n, types)
	}
	if n.Get("nullable").Kind() == 't' && t != unknown {
		t = unionOf([]*typ{t, null})
	}
	return t
}

// acceptsAll reports whether a schema accepts everything: generators write {"not": {}} for "nothing".
func acceptsAll(n rawjson.Node) bool {
	return n.Kind() == 't' || n.Kind() == '{' && n.Len() == 0
}

func (b *builder) reference(ref string) *typ {
	target := b.refs[ref]
	if target.IsZero() {
		return unknown
	}
	return b.schema(target, nil)
}

// constrain intersects t with the type that a schema describes besides its $ref. Keywords that no type can express (if,
// not, contains, dependentSchemas …) are left out: a signature may be wider than its schema, never narrower.
func (b *builder) constrain(t *typ, n rawjson.Node, types []string) *typ {
	types = typesOf(n, types)
	t = intersect(t, b.own(n, types))
	all := n.Get("allOf").Elements()
	for _, s := range all[:min(len(all), maxAllOf)] {
		t = intersect(t, b.schema(s, types))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if of := n.Get(key).Elements(); len(of) > 0 {
			t = intersect(t, unionOf(b.schemas(of, types)))
		}
	}
	return t
}

func (b *builder) schemas(of []rawjson.Node, types []string) []*typ {
	all := make([]*typ, len(of))
	for i, n := range of {
		all[i] = b.schema(n, types)
	}
	return all
}
