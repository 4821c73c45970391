package signature_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"unicode/utf8"
)

// inBound reports whether a value keeps one bound of a comment, such as "1..3", ">=2 chars" or "<=5 items".
func inBound(value any, bound string) bool {
	unit, size := "", new(big.Rat)
	switch v := value.(type) {
	case json.Number:
		size = rational(v)
	case string:
		unit, size = " chars", big.NewRat(int64(utf8.RuneCountInString(v)), 1)
	case []any:
		unit, size = " items", big.NewRat(int64(len(v)), 1)
	}
	bound, ok := strings.CutSuffix(bound, unit)
	if !ok {
		return true // a format or a pattern
	}
	least, most, isRange := strings.Cut(bound, "..")
	if isRange {
		return compare(size, least) >= 0 && compare(size, most) <= 0
	}
	for _, op := range []struct {
		text string
		ok   func(int) bool
	}{
		{">=", func(c int) bool { return c >= 0 }}, {"<=", func(c int) bool { return c <= 0 }},
		{">", func(c int) bool { return c > 0 }}, {"<", func(c int) bool { return c < 0 }}, {"", func(c int) bool { return c == 0 }},
	} {
		if number, found := strings.CutPrefix(bound, op.text); found {
			return op.ok(compare(size, number))
		}
	}
	return true
}

func compare(size *big.Rat, number string) int { return size.Cmp(rational(json.Number(number))) }

func rational(n json.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		panic("no number: " + n.String())
	}
	return r
}

func equal(a, b any) bool {
	x, isNumber := a.(json.Number)
	y, areNumbers := b.(json.Number)
	if isNumber && areNumbers {
		return rational(x).Cmp(rational(y)) == 0
	}
	return !isNumber && !areNumbers && a == b
}
