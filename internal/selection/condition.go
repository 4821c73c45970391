package selection

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/rawjson"
	"mcpx/internal/work"
)

// condition compares a field of a row with a value.
type condition struct {
	path     Path
	operator string
	value    string
	isQuoted bool // the value is a text, never null
}

func meetsAll(w *work.Watch, row rawjson.Node, conditions []condition) bool {
	return !slices.ContainsFunc(conditions, func(c condition) bool { return !c.isMet(w, row) })
}

// isMet reports whether one of the values at the path meets the condition. Elements of an
// array are compared one by one. A missing value counts as null.
func (c condition) isMet(w *work.Watch, row rawjson.Node) bool {
	return c.any(w, row) != (c.operator == "!=")
}

// any reports whether one of the values at the path meets the condition, or, for !=, equals
// its value.
func (c condition) any(w *work.Watch, row rawjson.Node) bool {
	rest, at := c.path.lead(row)
	switch {
	case at.Kind() == '[':
		return c.anyElement(w, rest, at)
	case len(rest) == 0:
		return c.isMetBy(at)
	}
	return !slices.Contains(rest, every) && c.isMetBy(rawjson.Node{})
}

// anyElement is any for an array that the path enters or leads to.
func (c condition) anyElement(w *work.Watch, rest Path, array rawjson.Node) (found bool) {
	f := finder{Watch: w, visit: func(n rawjson.Node) bool {
		found = c.isMetBy(n)
		return !found
	}}
	if len(rest) == 0 {
		rest = Path{every}
	}
	f.elements(rest, array)
	return found
}

func (c condition) isMetBy(n rawjson.Node) bool {
	switch c.operator {
	case "=", "!=":
		return c.equals(n)
	case "~":
		return strings.Contains(strings.ToLower(n.Text()), strings.ToLower(c.value))
	}
	order, ok := c.compare(n)
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

// equals reports whether a value is the condition's value. 5 equals 5.0 and "5".
func (c condition) equals(n rawjson.Node) bool {
	if rawjson.IsNull(n.Raw()) {
		return c.value == "null" && !c.isQuoted
	}
	if n.Text() == c.value {
		return true
	}
	order, ok := compareNumbers(string(n.Raw()), c.value)
	return n.IsNumber() && ok && order == 0
}

// compare compares a number or a text with the condition's value. Texts that are both
// numbers are compared as numbers.
func (c condition) compare(n rawjson.Node) (order int, ok bool) {
	if n.Kind() != '"' && !n.IsNumber() {
		return 0, false
	}
	text := n.Text()
	if order, ok := compareNumbers(text, c.value); ok {
		return order, true
	}
	return strings.Compare(text, c.value), n.Kind() == '"'
}

// compareNumbers compares two numbers exactly, however many digits they have. ok is
// false if one of them is no number.
func compareNumbers(a, b string) (order int, ok bool) {
	x, err := strconv.ParseFloat(a, 64)
	if !rawjson.IsNumber([]byte(a)) || !rawjson.IsNumber([]byte(b)) {
		return 0, false
	}
	y, err2 := strconv.ParseFloat(b, 64)
	if order = cmp.Compare(x, y); order != 0 && err == nil && err2 == nil || len(a)+len(b) > maxDigits || strings.ContainsAny(a+b, "eE") {
		return order, true
	}
	p, _ := new(big.Rat).SetString(a)
	q, _ := new(big.Rat).SetString(b)
	return p.Cmp(q), true
}

// maxDigits bounds the length of numbers that are compared exactly.
const maxDigits = 1000
