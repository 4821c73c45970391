package lockfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"mcpx/internal/ansi"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// Review shows the change to a person, over several lines: what changed in texts word by
// word, what changed elsewhere by its path, and what needs a closer look. Everything is
// shown, and every character can be seen.
func (c Change) Review(p ansi.Paint) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", visible(c.Server), p.Text(ansi.Bold, c.Title()))
	old, now := leavesOf(c.Old), leavesOf(c.New)
	title := b.Len()
	paths := allKeys(old, now)
	slices.SortStableFunc(paths, func(a, b string) int { return priority(b) - priority(a) })
	for _, path := range paths {
		before, was := old[path]
		after, is := now[path]
		label := path
		if label != "" {
			label += ": "
		}
		switch {
		case !was:
			fmt.Fprintf(&b, "  + %s%s\n", label, p.Text(ansi.Green, visible(leafText(after))))
		case !is:
			fmt.Fprintf(&b, "  - %s%s\n", label, p.Text(ansi.Red, visible(leafText(before))))
		case before != after:
			fmt.Fprintf(&b, "  ~ %s%s\n", label, difference(before, after, p))
		}
	}
	if b.Len() == title { // they differ in what leaves do not show, such as duplicate keys
		fmt.Fprintf(&b, "  ~ %s\n", changed(c.Old, c.New, p))
	}
	for _, note := range c.notes() {
		fmt.Fprintf(&b, "  %s\n", p.Text(ansi.Yellow, "! "+note))
	}
	return b.String()
}

// priority is higher for the texts that a model reads first.
func priority(path string) int { return slices.Index([]string{"description", "title", "name"}, path) }

// notes returns what needs a closer look in the new value.
func (c Change) notes() (notes []string) {
	known := addresses(allText(c.Old))
	text := allText(c.New)
	for _, url := range addresses(text) {
		if !slices.Contains(known, url) {
			known = append(known, url)
			notes = append(notes, "new URL: "+visible(url))
		}
	}
	switch n := hiddenCharacters(text); {
	case n == 1:
		notes = append(notes, "1 hidden character, shown as an escape")
	case n > 1:
		notes = append(notes, fmt.Sprintf("%d hidden characters, shown as escapes", n))
	}
	return notes
}

// leafText returns a value without members for a person: the text of a string, or JSON.
func leafText(value string) string {
	if text, ok := rawjson.String([]byte(value)); ok {
		return text
	}
	return value
}

// difference shows a changed value. In texts, removed words are in [-…-] and added ones in
// {+…+}.
func difference(old, now string, p ansi.Paint) string {
	before, wasText := rawjson.String([]byte(old))
	after, isText := rawjson.String([]byte(now))
	if !wasText || !isText {
		return changed(leafText(old), leafText(now), p)
	}
	var b strings.Builder
	for _, e := range wordDiff(before, after) {
		switch e.state {
		case '-':
			b.WriteString(removed(e.text, p))
		case '+':
			b.WriteString(added(e.text, p))
		default:
			b.WriteString(visible(e.text))
		}
	}
	return b.String()
}

func changed(old, now string, p ansi.Paint) string { return removed(old, p) + " " + added(now, p) }

func removed(text string, p ansi.Paint) string { return p.Text(ansi.Red, "[-"+visible(text)+"-]") }

func added(text string, p ansi.Paint) string { return p.Text(ansi.Green, "{+"+visible(text)+"+}") }

// leavesOf returns the values without members in a pinned value, by their paths.
func leavesOf(pinned string) map[string]string {
	leaves := map[string]string{}
	if pinned != "" {
		addLeaves(leaves, "", []byte(pinned))
	}
	return leaves
}

func addLeaves(leaves map[string]string, path string, value []byte) {
	isLeaf := true
	switch rawjson.Kind(value) {
	case '{':
		for key, member := range rawjson.Members(value) {
			isLeaf = false
			addLeaves(leaves, path+segment(key, path), member)
		}
	case '[':
		i := 0
		for element := range rawjson.Elements(value) {
			isLeaf = false
			addLeaves(leaves, fmt.Sprintf("%s[%d]", path, i), element)
			i++
		}
	}
	if isLeaf {
		leaves[path] = string(value)
	}
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_$-]+$`)

// segment returns a key as a part of a path.
func segment(key, path string) string {
	switch {
	case !plainKey.MatchString(key):
		return fmt.Sprintf(`["%s"]`, visible(key))
	case path == "":
		return key
	}
	return "." + key
}

// allText returns every text in a pinned value, keys included.
func allText(pinned string) string {
	if pinned == "" {
		return ""
	}
	var b strings.Builder
	keep := func(text string) string {
		b.WriteString(text + "\n")
		return text
	}
	rawjson.Rewrite([]byte(pinned), keep, func(_ []string, text string) string { return keep(text) })
	return b.String()
}

// visible returns a text on one line in which every character can be seen: controls, line
// breaks, zero-width, bidirectional and tag characters, variation selectors, unusual
// spaces and private characters become escapes. Unlike plain.Line it keeps none of them,
// because a review must show what hides.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case isHidden(r):
			b.WriteString(plain.Escape(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// blanks are letters and symbols that look like nothing.
var blanks = []rune{0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0}

// isHidden reports whether a character is not seen, or changes how others are seen. Line
// breaks and tabs are ordinary in descriptions.
func isHidden(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < 0x7f:
		return r < ' '
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Variation_Selector) || slices.Contains(blanks, r)
}

// hiddenCharacters returns how many hidden characters a text has.
func hiddenCharacters(text string) (count int) {
	for _, r := range text {
		if isHidden(r) {
			count++
		}
	}
	return count
}

var address = regexp.MustCompile(`(?i)\b(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s"'<>\\)\]}]+`)

// addresses returns the URLs in a text.
func addresses(text string) []string { return address.FindAllString(text, -1) }
