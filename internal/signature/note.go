package signature

import (
	"strings"

	"mcpx/internal/rawjson"
)

// maxPattern limits a pattern or format in a comment, in bytes.
const maxPattern = 30

// noteOf returns the text of a comment on a value of the given type: its bounds, its format or its pattern.
func noteOf(n rawjson.Node, typeName string) string {
	switch typeName {
	case "integer", "number":
		return span(bound(n, "minimum", "exclusiveMinimum", ">"), bound(n, "maximum", "exclusiveMaximum", "<"), "")
	case "string":
		length := span(count(n, "minLength", ">="), count(n, "maxLength", "<="), " chars")
		return join(shape(n), length)
	case "array":
		return span(count(n, "minItems", ">="), count(n, "maxItems", "<="), " items")
	}
	return ""
}

// limit is one end of a range: an operator and a number as written.
type limit struct{ op, number string }

// span writes a range as short as it can: "1..100", ">=1", "<=100", ">0, <=1".
func span(least, most limit, unit string) string {
	if least.op == ">=" && most.op == "<=" {
		if least.number == most.number {
			return least.number + unit
		}
		return least.number + ".." + most.number + unit
	}
	s := join(least.op+least.number, most.op+most.number)
	if s == "" {
		return ""
	}
	return s + unit
}

// bound reads one bound of a number. In draft 4, exclusive is a boolean that belongs to the inclusive bound.
func bound(n rawjson.Node, inclusive, exclusive, op string) limit {
	number, strict := n.Get(inclusive), n.Get(exclusive)
	switch {
	case strict.IsNumber():
		return limitOf(strict, op)
	case strict.Kind() == 't':
		return limitOf(number, op)
	}
	return limitOf(number, op+"=")
}

// count reads a bound of a length. It leaves out a minimum of 0, and a minimum of 1 without a maximum, which is so common
// that it is noise.
func count(n rawjson.Node, key, op string) limit {
	number := n.Get(key)
	if what, isLeast := strings.CutPrefix(key, "min"); isLeast {
		raw := string(number.Raw())
		if raw == "0" || raw == "1" && n.Get("max"+what).IsZero() {
			return limit{}
		}
	}
	return limitOf(number, op)
}

// maxNumber limits the digits of a bound. Longer ones are the ranges of machine types, which generators put on every integer.
const maxNumber = 9

func limitOf(n rawjson.Node, op string) limit {
	if !n.IsNumber() || len(n.Raw()) > maxNumber {
		return limit{}
	}
	return limit{op, string(n.Raw())}
}

// shape returns the format of a string, or else its pattern if that is short.
func shape(n rawjson.Node) string {
	for _, key := range []string{"format", "pattern"} {
		s, _ := n.Get(key).String()
		if s = escape(s); s != "" && len(s) <= maxPattern && !strings.Contains(s, "*/") {
			return s
		}
	}
	return ""
}

func join(a, b string) string {
	if a == "" || b == "" || a == b {
		return max(a, b)
	}
	return a + ", " + b
}
