package executor

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"mcpx/config"
	"mcpx/internal/plain"
	"mcpx/internal/tokens"
	"mcpx/registry"
)

// instructionBytes bounds the part of an upstream's instructions in a listing.
const instructionBytes = 600

// sentenceBytes bounds the part of a tool's description in a line.
const sentenceBytes = 160

// listing returns a list of an upstream's tools, one per line, in the most detailed form
// that the budget of tokens allows: signatures and descriptions, names with required
// parameters, names, or only the first names.
func listing(u *registry.Upstream, tools []*registry.Tool, budget int) string {
	head := heading(u, len(tools), budget/4)
	budget -= tokens.Count(head)
	for _, line := range []func(*registry.Tool) string{fullLine, shortLine, nameLine} {
		if text, fits := lines(tools, line, budget); fits {
			return head + text
		}
	}
	return head + page(u, tools, budget)
}

// listings caches the listings of whole upstreams. It may be used concurrently.
type listings struct{ cache sync.Map } // upstream name to *cachedListing

type cachedListing struct {
	upstream *registry.Upstream
	text     string
}

// of returns the listing of an upstream. It is made again when the upstream's entry in
// the catalog was replaced.
func (l *listings) of(u *registry.Upstream, budget int) string {
	if last, ok := l.cache.Load(u.Name); ok && last.(*cachedListing).upstream == u {
		return last.(*cachedListing).text
	}
	text := listing(u, u.Tools, budget)
	l.cache.Store(u.Name, &cachedListing{u, text})
	return text
}

// heading returns the first line of a listing: the upstream, its number of tools, its
// state and its instructions. It has at most budget tokens.
func heading(u *registry.Upstream, shown, budget int) string {
	head := fmt.Sprintf("%s: %s", u.Name, count(len(u.Tools), "tool"))
	if shown != len(u.Tools) {
		head += fmt.Sprintf(", %d shown", shown)
	}
	if u.State != registry.Ready {
		head += fmt.Sprintf(" (%s: %s)", u.State, plain.Cut(u.Reason, instructionBytes))
	}
	if u.Instructions != "" {
		head += "; " + plain.Cut(plain.Line(u.Instructions), instructionBytes)
	}
	if end := tokens.Cut(head, budget-2); end < len(head) {
		head = head[:end] + "…"
	}
	return head + "\n"
}

// count returns a number with its noun in singular or plural.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// lines returns one line for every tool; fits is false if they exceed the budget.
func lines(tools []*registry.Tool, line func(*registry.Tool) string, budget int) (text string, fits bool) {
	var b strings.Builder
	for _, t := range tools {
		l := line(t)
		if budget -= tokens.Count(l) + 1; budget < 0 {
			return "", false
		}
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n"), true
}

func fullLine(t *registry.Tool) string {
	line := fmt.Sprintf("%s(%s)", shown(t.Name), t.Signature())
	if s := sentence(t.Description); s != "" {
		line += ": " + s
	}
	return line
}

func shortLine(t *registry.Tool) string {
	return fmt.Sprintf("%s(%s)", shown(t.Name), t.RequiredParameters())
}

func nameLine(t *registry.Tool) string { return shown(t.Name) }

// page returns as many names as fit, and how to see the others.
func page(u *registry.Upstream, tools []*registry.Tool, budget int) string {
	more := func(left int) string {
		return fmt.Sprintf("… %d more: inspect(%q, \"word*\"), or exec(%q, \"search\", {\"query\": …})", left, u.Name, Builtin)
	}
	if tokens.Exceeds(more(len(tools)), budget) { // the name is long
		more = func(left int) string {
			return fmt.Sprintf("… %d more: exec(%q, \"search\", {\"query\": …})", left, Builtin)
		}
	}
	budget -= tokens.Count(more(len(tools)))
	var b strings.Builder
	shown := 0
	for _, t := range tools {
		line := nameLine(t)
		if budget -= tokens.Count(line) + 1; budget < 0 {
			break
		}
		shown++
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String() + more(len(tools)-shown)
}

// sentence returns the first sentence of a description, on one line.
func sentence(description string) string {
	text := strings.TrimSpace(description)
	if i := strings.IndexAny(text, "\n\r"); i >= 0 {
		text = strings.TrimSpace(text[:i])
	}
	for i := 0; i < len(text); i++ {
		if text[i] == '.' && i+1 < len(text) && text[i+1] == ' ' && !endsInAbbreviation(text[:i]) {
			text = text[:i]
			break
		}
	}
	return plain.Cut(strings.TrimSuffix(plain.Line(text), "."), sentenceBytes)
}

// endsInAbbreviation reports whether a text ends in an abbreviation, so that a period
// after it does not end the sentence.
func endsInAbbreviation(text string) bool {
	for _, a := range []string{"e.g", "i.e", "etc", " vs", "approx"} {
		if strings.HasSuffix(text, a) {
			return true
		}
	}
	return false
}

// match returns the tools that a pattern matches, in the upstream's order. A pattern is
// a name, a glob, or a comma-separated list of these.
func match(u *registry.Upstream, pattern string) []*registry.Tool {
	var found []*registry.Tool
	parts := strings.Split(pattern, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	globs := config.Filter{Allow: parts}
	for _, t := range u.Tools {
		if slices.Contains(parts, t.Name) || globs.Allows(t.Name) {
			found = append(found, t)
		}
	}
	return found
}
