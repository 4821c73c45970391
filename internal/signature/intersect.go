package signature

import "slices"

// intersect returns a type for the values that both a and b accept. It may accept more where TypeScript has no short way
// to say it, but never excludes such a value.
func intersect(a, b *typ) *typ {
	switch {
	case a == unknown || same(a, b):
		return b
	case b == unknown:
		return a
	case a.kind == intersection && b.kind != word:
		return &typ{kind: intersection, parts: append(slices.Clone(a.parts), b)}
	case a.kind == union || b.kind == union:
		return intersectUnions(a, b)
	}
	return intersectOne(a, b)
}

func intersectUnions(a, b *typ) *typ {
	if a.kind == object && onlyRequires(a, b) {
		return a
	}
	var kept []*typ
	for _, x := range members(a) {
		for _, y := range members(b) {
			t := intersectOne(x, y)
			// Merging properties into each member of a union would write them again and again.
			if t.kind == intersection || t.kind == object && x.kind == object && y.kind == object {
				return &typ{kind: intersection, parts: []*typ{a, b}}
			}
			kept = append(kept, t)
		}
	}
	return unionOf(kept)
}

// onlyRequires reports whether all that the alternatives do is to require some properties of t. Those are then shown as
// optional, because a list of parameters cannot say "one of these".
func onlyRequires(t, alternatives *typ) bool {
	for _, m := range members(alternatives) {
		if m == free {
			continue
		}
		if m.kind != object || m.rest != nil {
			return false
		}
		for _, p := range m.props {
			known := slices.ContainsFunc(t.props, func(q prop) bool { return q.name == p.name })
			if p.typ != unknown || !known {
				return false
			}
		}
	}
	return true
}

// intersectOne intersects two types, neither of them a union.
func intersectOne(a, b *typ) *typ {
	x, y := a.base(), b.base()
	switch {
	case a == never || b == never:
		return never
	case a == unknown || a == open || same(a, b):
		return b
	case b == unknown || b == open:
		return a
	case a.kind == word && y == "":
		return b // it says more
	case b.kind == word && x == "":
		return a
	case x == "" || y == "":
		return &typ{kind: intersection, parts: []*typ{a, b}}
	case x != y:
		return never
	case a.kind == object && b.kind == object:
		return mergeObjects(a, b)
	case a.kind == list && b.kind == list:
		return mergeLists(a, b)
	case a.kind == word && b.kind == word:
		return mergeWords(a, b)
	case a.kind == word:
		return b
	case b.kind == word, x == "number": // two numbers may be the same value: 1 and 1.0
		return a
	}
	return never
}

func mergeWords(a, b *typ) *typ {
	text := a.text
	if b.text == "integer" {
		text = b.text
	}
	return &typ{text: text, note: join(a.note, b.note)}
}

func mergeLists(a, b *typ) *typ {
	if len(a.parts) > 0 || len(b.parts) > 0 || a.rest == nil || b.rest == nil {
		return &typ{kind: intersection, parts: []*typ{a, b}}
	}
	return &typ{kind: list, rest: intersect(a.rest, b.rest), note: join(a.note, b.note)}
}

func mergeObjects(a, b *typ) *typ {
	at := make(map[string]int, len(a.props))
	for i, p := range a.props {
		at[p.name] = i
	}
	merged := &typ{kind: object, props: slices.Clone(a.props), rest: a.rest}
	for _, p := range b.props {
		i, known := at[p.name]
		if !known {
			merged.props = append(merged.props, p)
			continue
		}
		q := &merged.props[i]
		q.typ = intersect(q.typ, p.typ)
		q.required = q.required || p.required
		q.value = max(q.value, p.value)
	}
	switch {
	case a.rest == nil:
		merged.rest = b.rest
	case b.rest != nil:
		merged.rest = intersect(a.rest, b.rest)
	}
	if merged.rest == never {
		merged.rest = nil // signatures do not show that an object is closed
	}
	return merged
}
