package results

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/tokens"
)

// note returns the end of a cut text: size and shape of the result, and ways to read it. It
// has at most 1,200 characters.
func note(k kept, h handle, shown int) string {
	start, part := "", "none shown"
	if shown > 0 {
		start, part = "\n…", "first "+grouped(shown)+" bytes shown"
	}
	return fmt.Sprintf(`%s[cut: %s bytes, %s in all; %s. Shape: %s. Kept as %s%s: %s]`,
		start, grouped(len(k.text)), size(k.text), part, outline(k, maxOutline), h.id, h.place, ways(k, h.id, shown))
}

// ways names the ways to read a kept result.
func ways(k kept, id string, shown int) string {
	offset := fmt.Sprintf(`exec("mcpx","read_result",{"id":"%s","offset":%d})`, id, shown)
	if k.data == "" {
		return offset + ", or limit, grep (RE2)"
	}
	fields := "field, field where field = value"
	if names := slices.DeleteFunc(rowFields(k.data), isUnusual); len(names) > 0 {
		fields = strings.Join(names[:min(len(names), 2)], ", ") + " limit 20"
	}
	return fmt.Sprintf(`exec("mcpx","read_result",{"id":"%s","select":%s}), or path (JSON Pointer, * = every), grep (RE2), offset %d; {"$r":"%s/…"} passes a part to another call`,
		id, quote(fields), shown, id)
}

// isUnusual reports whether a name is too long for an example, or needs quotes in a select.
func isUnusual(name string) bool { return len(name) > maxKey || !plainKey.MatchString(name) }

// countedBytes is the length up to which tokens are counted, not guessed from the start
// of the text.
const countedBytes = 1 << 20

// size returns the number of tokens of a text, in words.
func size(text string) string {
	if len(text) <= countedBytes {
		return grouped(tokens.Count(text)) + " tokens"
	}
	start := tokens.Count(text[:countedBytes])
	return "~" + grouped(start*(len(text)>>10)/(countedBytes>>10)) + " tokens"
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// counted writes a number of things: 1 line, 1,234 lines.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}
