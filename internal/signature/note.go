package signature

import (
	"strings"

	"mcpx/internal/rawjson"
)

// maxPattern bounds a pattern or format shown in a comment, in bytes.
const maxPattern = 30

// noteOf returns what a caller must know of a value of the given type beyond the type itself: its bounds, its format
// or its pattern. It is written as a comment.
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

// bound reads one bound of a number. Draft-04 writes an exclusive one as a boolean beside the inclusive.
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

// count reads a bound of a length. "At least none" says nothing; "at least one" alone, so common that it is noise, is what
// a caller does anyway.
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

// maxNumber bounds a bound, in digits. Longer ones are the ranges of machine types, which generators put on every integer.
const maxNumber = 9

func limitOf(n rawjson.Node, op string) limit {
	if !n.IsNumber() || len(n.Raw()) > maxNumber {
		return limit{}
	}
	return limit{op, string(n.Raw())}
}

// shape is the format of a string, or else its pattern if that is short.
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
