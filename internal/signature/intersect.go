package signature

import "slices"

// maxWork bounds the work of intersect. Definitions that are used again and again would make it endless.
const maxWork = 50_000

// intersect returns a type for the values that both x and y accept, or a wider one. Where TypeScript has no short way to
// say it, that is x.
func (b *builder) intersect(x, y *typ) *typ {
	switch {
	case x == unknown, x == open, y == never, x == y:
		return y
	case y == unknown, y == open, x == never, b.work > maxWork:
		return x
	}
	b.work++
	switch {
	case x.kind == union || y.kind == union:
		return b.intersectUnions(x, y)
	case x.base() != y.base():
		return never
	case x.kind == object && y.kind == object:
		return b.mergeObjects(x, y)
	case x.kind == list && y.kind == list:
		return &typ{kind: list, rest: b.intersect(x.rest, y.rest), note: join(x.note, y.note)}
	case x.kind == word && y.kind == word:
		return mergeWords(x, y)
	case x.kind == word:
		return y // it says more
	}
	return x
}

func (b *builder) intersectUnions(x, y *typ) *typ {
	if x.kind == object && onlyRequires(x, y) {
		return x
	}
	var kept []*typ
	for _, m := range members(x) {
		for _, n := range members(y) {
			kept = append(kept, b.intersect(m, n))
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

func mergeWords(x, y *typ) *typ {
	text := x.text
	if y.text == "integer" {
		text = y.text
	}
	return &typ{text: text, note: join(x.note, y.note)}
}

func (b *builder) mergeObjects(x, y *typ) *typ {
	b.work += len(x.props) + len(y.props)
	at := make(map[string]int, len(x.props))
	for i, p := range x.props {
		at[p.name] = i
	}
	merged := &typ{kind: object, props: slices.Clone(x.props), rest: x.rest}
	for _, p := range y.props {
		i, known := at[p.name]
		if !known {
			merged.props = append(merged.props, p)
			continue
		}
		q := &merged.props[i]
		q.typ = b.intersect(q.typ, p.typ)
		q.required = q.required || p.required
		q.value = max(q.value, p.value)
	}
	switch {
	case x.rest == nil:
		merged.rest = y.rest
	case y.rest != nil:
		merged.rest = b.intersect(x.rest, y.rest)
	}
	if merged.rest == never {
		merged.rest = nil // signatures do not show that an object is closed
	}
	return merged
}
