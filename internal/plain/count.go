package plain

import (
	"strconv"
	"strings"
)

// Number writes 1234567 as 1,234,567.
func Number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Count writes a number of things, whose name is given in the singular: 1 line, 1,234 lines.
func Count(n int, noun string) string {
	stem, isY := strings.CutSuffix(noun, "y")
	switch {
	case n == 1:
		return "1 " + noun
	case isY:
		return Number(n) + " " + stem + "ies"
	case strings.HasSuffix(noun, "ch"):
		return Number(n) + " " + noun + "es"
	}
	return Number(n) + " " + noun + "s"
}
