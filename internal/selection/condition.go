package selection

import (
	"iter"
	"slices"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/work"
)

// test is a condition that rows meet or not: a comparison, or several with and, or, not.
type test interface {
	isMet(w *work.Watch, row rawjson.Node) bool
	mapped(f func(comparison) comparison) test // with other comparisons
	each(yield func(comparison) bool) (more bool)
	source() string // as it is written in a select
}

type (
	allOf    []test
	anyOf    []test
	negation struct{ test test }
)

func (a allOf) isMet(w *work.Watch, row rawjson.Node) bool {
	return !slices.ContainsFunc(a, func(t test) bool { return !t.isMet(w, row) })
}

func (a anyOf) isMet(w *work.Watch, row rawjson.Node) bool {
	return slices.ContainsFunc(a, func(t test) bool { return t.isMet(w, row) })
}

func (n negation) isMet(w *work.Watch, row rawjson.Node) bool { return !n.test.isMet(w, row) }

func (a allOf) mapped(f func(comparison) comparison) test    { return allOf(mapAll(a, f)) }
func (a anyOf) mapped(f func(comparison) comparison) test    { return anyOf(mapAll(a, f)) }
func (n negation) mapped(f func(comparison) comparison) test { return negation{n.test.mapped(f)} }

func mapAll(tests []test, f func(comparison) comparison) []test {
	var all []test
	for _, t := range tests {
		all = append(all, t.mapped(f))
	}
	return all
}

func (a allOf) each(yield func(comparison) bool) bool    { return eachOf(a, yield) }
func (a anyOf) each(yield func(comparison) bool) bool    { return eachOf(a, yield) }
func (n negation) each(yield func(comparison) bool) bool { return n.test.each(yield) }

func eachOf(tests []test, yield func(comparison) bool) bool {
	return !slices.ContainsFunc(tests, func(t test) bool { return !t.each(yield) })
}

// leaves returns the comparisons of a test, which may be nil.
func leaves(t test) iter.Seq[comparison] {
	return func(yield func(comparison) bool) {
		if t != nil {
			t.each(yield)
		}
	}
}

// comparison compares a field of a row with a value, or with several.
type comparison struct {
	path      Path
	operator  string // = != < <= > >= ~ in
	values    []value
	reference *SetReference // in {"$r": …}: the values are in a kept result
	set       *set          // the values of in
}

// value is a value that a query compares with.
type value struct {
	text   string
	isText bool // it looks like null or a number, but is a text
}

// isNull reports whether the value is null.
func (v value) isNull() bool { return v.text == "null" && !v.isText }

func (c comparison) mapped(f func(comparison) comparison) test { return f(c) }
func (c comparison) each(yield func(comparison) bool) bool     { return yield(c) }

// isMet reports whether one of the values at the path meets the condition. Elements of an
// array are compared one by one. A missing value counts as null.
func (c comparison) isMet(w *work.Watch, row rawjson.Node) bool {
	return c.any(w, row) != (c.operator == "!=")
}

// any reports whether one of the values at the path meets the condition, or, for !=, equals
// its value.
func (c comparison) any(w *work.Watch, row rawjson.Node) (found bool) {
	eachValue(w, c.path, row, func(n rawjson.Node) bool {
		found = c.isMetBy(n)
		return !found
	})
	return found
}

// eachValue visits the values that a path leads to, until visit returns false. If it leads to
// an array, it visits the elements. A missing value is the zero Node.
func eachValue(w *work.Watch, path Path, row rawjson.Node, visit func(rawjson.Node) (more bool)) {
	rest, at := path.lead(row)
	switch {
	case at.Kind() == '[':
		if len(rest) == 0 {
			rest = Path{every}
		}
		f := finder{Watch: w, visit: visit}
		f.elements(rest, at)
	case len(rest) == 0:
		visit(at)
	case !slices.Contains(rest, every):
		visit(rawjson.Node{})
	}
}

func (c comparison) isMetBy(n rawjson.Node) bool {
	switch c.operator {
	case "=", "!=":
		return c.values[0].equals(n)
	case "~":
		return strings.Contains(strings.ToLower(n.Text()), strings.ToLower(c.values[0].text))
	case "in":
		return c.set != nil && c.set.has(n)
	}
	order, ok := c.values[0].compare(n)
	switch c.operator {
	case "<":
		return ok && order < 0
	case "<=":
		return ok && order <= 0
	case ">":
		return ok && order > 0
	}
	return ok && order >= 0
}

// equals reports whether a value of a row is this value. 5 equals 5.0 and "5.0", but "5" in
// quotes does not equal the text "5.0".
func (v value) equals(n rawjson.Node) bool {
	if rawjson.IsNull(n.Raw()) {
		return v.isNull()
	}
	text := n.Text()
	if text == v.text {
		return true
	}
	if !n.IsNumber() && (n.Kind() != '"' || v.isText) {
		return false
	}
	order, ok := compareNumbers(text, v.text)
	return ok && order == 0
}

// compare compares a number or a text with the value. Texts that are both numbers are
// compared as numbers.
func (v value) compare(n rawjson.Node) (order int, ok bool) {
	if n.Kind() != '"' && !n.IsNumber() {
		return 0, false
	}
	text := n.Text()
	if order, ok := compareNumbers(text, v.text); ok {
		return order, true
	}
	return strings.Compare(text, v.text), n.Kind() == '"'
}
