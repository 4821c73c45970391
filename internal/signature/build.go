package signature

import (
	"slices"

	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

// builder turns the schemas of one document into types.
type builder struct {
	document *schema.Schema
	built    map[rawjson.Node]*typ // the targets of references; nil: not yet built
	depth    int
	work     int // done by intersect
}

const (
	maxDepth = 64 // nesting of schemas; deeper ones are shown as unknown
	maxAllOf = 64
)

func newBuilder(s *schema.Schema) *builder {
	b := &builder{document: s, built: map[rawjson.Node]*typ{}}
	references, ok := s.References()
	if !ok {
		return b
	}
	for _, reference := range references {
		if target, err := s.Resolve(reference); err == nil {
			b.built[target] = nil
		}
	}
	return b
}

// schema returns the type of the values that n accepts. The target of references is built once. types are the JSON types
// of the schema around an anyOf, oneOf or allOf: they hold for members that name none.
func (b *builder) schema(n rawjson.Node, types []string) *typ {
	t, isTarget := b.built[n]
	switch {
	case t != nil:
		return t
	case b.depth == maxDepth:
		return unknown
	}
	b.depth++
	defer func() { b.depth-- }()
	if !isTarget {
		return b.build(n, types)
	}
	b.built[n] = recursion(n)
	b.built[n] = b.build(n, nil)
	return b.built[n]
}

// recursion returns the type of a schema where it contains itself.
func recursion(n rawjson.Node) *typ {
	isObject := slices.Equal(typesOf(n, nil), []string{"object"}) && n.Get("nullable").Kind() != 't'
	if isObject && n.Get("$ref").IsZero() { // up to draft 7, a $ref hides the type
		return hidden
	}
	return unknown
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
		t = b.intersect(t, b.reference(ref)) // the same as a $ref, because there is no inner $id
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
	target, _ := b.document.Resolve(ref)
	if _, isTarget := b.built[target]; !isTarget {
		return unknown
	}
	return b.schema(target, nil)
}

// constrain intersects t with the type that a schema describes besides its $ref. Keywords that no type can express (if,
// not, contains, dependentSchemas …) are left out: a signature may be wider than its schema, never narrower.
func (b *builder) constrain(t *typ, n rawjson.Node, types []string) *typ {
	types = typesOf(n, types)
	t = b.intersect(t, b.own(n, types))
	all := n.Get("allOf").Elements()
	for _, s := range all[:min(len(all), maxAllOf)] {
		t = b.intersect(t, b.schema(s, types))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if of := n.Get(key).Elements(); len(of) > 0 {
			t = b.intersect(t, unionOf(b.schemas(of, types)))
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
