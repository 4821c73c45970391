package lockfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mcpx/internal/ansi"
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
			fmt.Fprintf(&b, "  + %s%s\n", label, p.Text(ansi.Green, visible(after.value)))
		case !is:
			fmt.Fprintf(&b, "  - %s%s\n", label, p.Text(ansi.Red, visible(before.value)))
		case before != after:
			fmt.Fprintf(&b, "  ~ %s%s\n", label, difference(before, after, p))
		}
	}
	if b.Len() == title { // they differ in what leaves do not show, such as duplicate keys
		fmt.Fprintf(&b, "  ~ %s\n", difference(leaf{value: c.Old}, leaf{value: c.New}, p))
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

// leaf is a value without members: a text, or the JSON of any other value.
type leaf struct {
	value  string
	isText bool
}

// difference shows a changed value. In texts, removed words are in [-…-] and added ones in
// {+…+}.
func difference(old, now leaf, p ansi.Paint) string {
	if !old.isText || !now.isText {
		return p.Text(ansi.Red, "[-"+visible(old.value)+"-]") + " " + p.Text(ansi.Green, "{+"+visible(now.value)+"+}")
	}
	var b strings.Builder
	for _, e := range wordDiff(old.value, now.value) {
		switch e.state {
		case '-':
			b.WriteString(p.Text(ansi.Red, "[-"+visible(e.text)+"-]"))
		case '+':
			b.WriteString(p.Text(ansi.Green, "{+"+visible(e.text)+"+}"))
		default:
			b.WriteString(visible(e.text))
		}
	}
	return b.String()
}

// leavesOf returns the leaves of a pinned value by their paths.
func leavesOf(pinned string) map[string]leaf {
	leaves := map[string]leaf{}
	if pinned != "" {
		addLeaves(leaves, "", []byte(pinned))
	}
	return leaves
}

func addLeaves(leaves map[string]leaf, path string, value []byte) {
	isEmpty := true
	switch rawjson.Kind(value) {
	case '{':
		for key, member := range rawjson.Members(value) {
			isEmpty = false
			addLeaves(leaves, path+segment(key, path), member)
		}
	case '[':
		i := 0
		for element := range rawjson.Elements(value) {
			isEmpty = false
			addLeaves(leaves, fmt.Sprintf("%s[%d]", path, i), element)
			i++
		}
	case '"':
		isEmpty = false
		text, _ := rawjson.String(value)
		leaves[path] = leaf{text, true}
	}
	if isEmpty {
		leaves[path] = leaf{string(value), false}
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
