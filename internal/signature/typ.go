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

// unionOf joins types: flat, null last, each once. Types that are written alike are one, unless they are long.
func unionOf(types []*typ) *typ {
	if len(types) == 1 {
		return types[0]
	}
	var kept []*typ
	var texts []string
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
			default:
				if text := written(m); text == "" && !slices.Contains(kept, m) || text != "" && !slices.Contains(texts, text) {
					kept, texts = append(kept, m), append(texts, text)
				}
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
		if base, ok := wordBases[t.text]; ok {
			return base
		}
		return t.text
	}
	return ""
}

// wordBases has the JSON types of words that are not the name of one.
var wordBases = map[string]string{"integer": "number", hidden.text: "object", unknown.text: "", never.text: "", open.text: ""}

func literalBase(text string) string {
	switch text[0] {
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	}
	return "number"
}
