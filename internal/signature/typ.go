package signature

import "slices"

// typ is a type of the signature language. A typ is never changed once it is part of another.
type typ struct {
	kind  kind
	text  string // a word or a literal, as written
	note  string // shown as a comment
	parts []*typ // members of a union
	props []prop // of an object
	rest  *typ   // type of a list's elements, or of an object's other keys; nil: not described, or not allowed
}

type kind byte

const (
	word    kind = iota // string, number, integer, boolean, null, object, unknown, never, {…}, …
	literal             // a JSON scalar
	union               // A | B
	list                // A[]
	object              // {a: A, b?: B, [key: string]: C}
)

// prop is a property of an object; at the root, a parameter.
type prop struct {
	name     string
	typ      *typ
	required bool
	value    string // " = " and the default, as written; empty if there is none
}

// head returns "name: " or "name?: ", or nothing for a long name.
func (p prop) head() string {
	k := key(p.name)
	switch {
	case k == "":
		return ""
	case p.required:
		return k + ": "
	}
	return k + "?: "
}

var (
	unknown = &typ{text: "unknown"}
	never   = &typ{text: "never"}
	null    = &typ{text: "null"}
	free    = &typ{text: "object"}
	hidden  = &typ{text: "{…}"} // an object whose properties are not shown
	open    = &typ{text: "…"}   // in a union: and others
)

// A union with more than maxMembers shows the first shownMembers.
const (
	maxMembers   = 16
	shownMembers = 12
)

// unionOf joins types: flat, each once, null last.
func unionOf(types []*typ) *typ {
	var kept []*typ
	nullable, cut := false, false
	for _, t := range types {
		for _, m := range members(t) {
			switch {
			case m == unknown:
				return unknown
			case m == never:
			case m == null:
				nullable = true
			case m == open:
				cut = true
			case len(kept) > maxMembers:
				cut = true
			case !slices.ContainsFunc(kept, func(k *typ) bool { return same(k, m) }):
				kept = append(kept, m)
			}
		}
	}
	if len(kept) > maxMembers || cut {
		kept = append(slices.Clip(kept[:min(len(kept), shownMembers)]), open)
	}
	if nullable {
		kept = append(kept, null)
	}
	switch len(kept) {
	case 0:
		return never
	case 1:
		return kept[0]
	}
	return &typ{kind: union, parts: kept}
}

// members returns the members of a union, or the type itself.
func members(t *typ) []*typ {
	if t.kind == union {
		return t.parts
	}
	return []*typ{t}
}

// same reports whether two types are written alike. It takes large ones for different: they may contain a definition so
// often that a comparison would not end.
func same(a, b *typ) bool {
	c := comparison{left: 1000}
	return c.same(a, b)
}

// comparison compares as many pairs of types as are left.
type comparison struct{ left int }

func (c *comparison) same(a, b *typ) bool {
	if a == b {
		return true
	}
	c.left--
	if a == nil || b == nil || c.left < 0 {
		return false
	}
	return a.kind == b.kind && a.text == b.text && a.note == b.note &&
		slices.EqualFunc(a.parts, b.parts, c.same) && slices.EqualFunc(a.props, b.props, c.sameProp) && c.same(a.rest, b.rest)
}

func (c *comparison) sameProp(a, b prop) bool {
	return a.name == b.name && a.required == b.required && a.value == b.value && c.same(a.typ, b.typ)
}

// base returns the JSON type of a type's values, "" if they may have several.
func (t *typ) base() string {
	switch t.kind {
	case literal:
		return literalBase(t.text)
	case list:
		return "array"
	case object:
		return "object"
	case word:
		switch t.text {
		case "integer":
			return "number"
		case hidden.text:
			return "object"
		case "unknown", "never", "…":
			return ""
		}
		return t.text
	}
	return ""
}

func literalBase(text string) string {
	switch text[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	}
	return "number"
}
