package results

import (
	"fmt"
	"strconv"

	"mcpx/internal/tokens"
)

// note tells the reader what was cut, its shape and how to read it. what names the
// text if it is not simply the text at that place.
func note(text string, shown int, id, what string) string {
	head, part, offset := "", "none shown", ""
	if shown > 0 {
		head = "\n…"
		part = "first " + grouped(shown) + " bytes shown"
		offset = fmt.Sprintf(`,"offset":%d`, shown)
	}
	also := "limit, grep (RE2)"
	if isJSON(text) {
		also = "limit, path (JSON Pointer, * = every), grep (RE2)"
	}
	return fmt.Sprintf(`%s[cut: %s%s bytes, ~%s tokens in all; %s. Shape: %s. Read on: exec("mcpx","read_result",{"id":"%s"%s}); also %s]`,
		head, what, grouped(len(text)), grouped(tokens.Count(text)), part, outline(text), id, offset, also)
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
