package signature

import (
	"net/url"
	"strconv"
	"strings"
)

// builder turns the schemas of one document into types.
type builder struct {
	root  *node
	defs  map[*node]*def // what references point to
	refs  map[string]*node
	depth int
	// Up to draft-07, a $ref replaces whatever stands beside it, and there are no anchors.
	refAlone bool
	dynamic  bool // $dynamicRef and $dynamicAnchor are keywords
	anchors  map[string]*anchor
}

const (
	maxDepth = 64 // of schemas within schemas; deeper ones are unknown
	maxAllOf = 64
)

// rootName stands for the parameters as a whole, where a schema refers back to its root.
const rootName = "Arguments"

// arguments returns the type of a tool's arguments, which are always an object.
func (b *builder) arguments() *typ {
	if d := b.defs[b.root]; d != nil {
		d.built, d.name = true, rootName
	}
	t := b.build(b.root, []string{"object"})
	if t.kind == named && t.def.typ != nil {
		t.def.name = rootName
		return t.def.typ
	}
	return t
}

func newBuilder(text string) *builder {
	root, refs := parse(text)
	b := &builder{root: root}
	dialect, _ := root.get("$schema").str()
	b.refAlone = strings.Contains(dialect, "/draft-0")
	b.dynamic = !b.refAlone && !strings.Contains(dialect, "/2019-09/")
	if len(refs) > 0 {
		b.defs = make(map[*node]*def)
		b.refs = make(map[string]*node, len(refs))
	}
	for _, ref := range refs {
		b.register(ref)
	}
	return b
}

func (b *builder) register(ref string) {
	target, seen := b.refs[ref]
	if !seen {
		target = b.resolve(ref)
		b.refs[ref] = target
	}
	if target == nil {
		return
	}
	d := b.defs[target]
	if d == nil {
		if a := b.anchors[strings.TrimPrefix(ref, "#")]; a != nil {
			ref = a.pointer
		}
		d = &def{ref: ref}
		if !isDefinition(ref) {
			d.uses++
		}
		b.defs[target] = d
	}
	d.uses++
}

// isDefinition tells whether a reference points into a place for definitions, where nothing is but what is referred to.
func isDefinition(ref string) bool {
	parent := ref[:max(strings.LastIndexByte(ref, '/'), 0)]
	return strings.HasSuffix(parent, "/$defs") || strings.HasSuffix(parent, "/definitions")
}

// resolve follows a JSON Pointer or an anchor in a URI fragment. Nothing is looked up outside of the document.
func (b *builder) resolve(ref string) *node {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil
	}
	if pointer != "" && pointer[0] != '/' {
		return b.anchored(pointer)
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil
	}
	n := b.root
	for pointer != "" && n != nil {
		var token string
		token, pointer, _ = strings.Cut(pointer[1:], "/")
		if pointer != "" {
			pointer = "/" + pointer
		}
		n = n.child(strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
	}
	return n
}

func (n *node) child(token string) *node {
	if !n.isArray() {
		return n.get(token)
	}
	if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.members) {
		return n.members[i].value
	}
	return nil
}

// schema returns the type of the values that n accepts. The types that stand beside an anyOf, oneOf or allOf hold for
// its members too, and are passed down for those that name none.
func (b *builder) schema(n *node, types []string) *typ {
	if b.depth == maxDepth {
		return unknown
	}
	b.depth++
	t := b.place(n, types)
	b.depth--
	return t
}

// place returns the type of n itself, or the name of its definition.
func (b *builder) place(n *node, types []string) *typ {
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

// unalias makes a definition that is only a name for another stand for what that stands for. One that is a name for
// itself stands for nothing.
func unalias(t *typ) *typ {
	if t.kind != named {
		return t
	}
	if t.def.typ == nil {
		return unknown
	}
	return t.def.typ
}

func (b *builder) build(n *node, types []string) *typ {
	if n.isFalse() || accepts(n.get("not")) {
		return never
	}
	if !n.isObject() {
		return unknown
	}
	t := unknown
	ref, isRef := n.get("$ref").str()
	if isRef {
		t = b.reference(ref)
	}
	if ref, ok := n.get("$dynamicRef").str(); ok && b.dynamic {
		t = intersect(t, b.reference(ref)) // no inner $id: it means what a $ref means
	}
	if !isRef || !b.refAlone {
		t = b.constrain(t, n, types)
	}
	if n.get("nullable").isTrue() && t != unknown {
		t = unionOf([]*typ{t, null})
	}
	return t
}

// accepts tells whether a schema accepts everything: generators write {"not": {}} for "nothing".
func accepts(n *node) bool {
	return n.isTrue() || n.isObject() && len(n.members) == 0
}

func (b *builder) reference(ref string) *typ {
	target := b.refs[ref]
	if target == nil {
		return unknown
	}
	return b.schema(target, nil)
}

// constrain intersects t with what a schema says apart from its $ref. What only restricts values in ways that no type
// can (if, not, contains, dependentSchemas …) is left out: a signature may be wider than its schema, never narrower.
func (b *builder) constrain(t *typ, n *node, types []string) *typ {
	types = typesOf(n, types)
	t = intersect(t, b.own(n, types))
	for i, m := range n.list("allOf") {
		if i == maxAllOf {
			break
		}
		t = intersect(t, b.schema(m.value, types))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if of := n.list(key); len(of) > 0 {
			t = intersect(t, unionOf(b.schemas(of, types)))
		}
	}
	return t
}

func (b *builder) schemas(of []member, types []string) []*typ {
	all := make([]*typ, len(of))
	for i, m := range of {
		all[i] = b.schema(m.value, types)
	}
	return all
}
