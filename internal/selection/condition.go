package selection

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/rawjson"
)

// condition compares a field of a row with a value.
type condition struct {
	path     Path
	operator string
	value    string
	isQuoted bool // the value is a text, never null
}

func meetsAll(row rawjson.Node, conditions []condition) bool {
	return !slices.ContainsFunc(conditions, func(c condition) bool { return !c.isMet(row) })
}

// isMet reports whether one of the values at the path meets the condition. Elements of an
// array are compared one by one. A missing value counts as null.
func (c condition) isMet(row rawjson.Node) bool {
	found, several, _ := c.path.find(row)
	if len(found) == 1 && !several && found[0].Kind() == '[' {
		found, several = found[0].Elements(), true
	}
	if len(found) == 0 && !several {
		found = []rawjson.Node{{}}
	}
	if c.operator == "!=" {
		return !slices.ContainsFunc(found, c.equals)
	}
	return slices.ContainsFunc(found, c.isMetBy)
}

func (c condition) isMetBy(n rawjson.Node) bool {
	switch c.operator {
	case "=":
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
