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

// instructionBytes bounds what a listing shows of an upstream's instructions.
const instructionBytes = 600

// sentenceBytes bounds what a line shows of a tool's description.
const sentenceBytes = 160

// listing writes the tools of an upstream, one a line, as fully as the budget of
// tokens allows: signatures and sentences; names with required parameters;
// names; a page of names.
func listing(u *registry.Upstream, tools []*registry.Tool, budget int) string {
	head := heading(u, len(tools), budget/4)
	budget -= tokens.Estimate(head)
	for _, line := range []func(*registry.Tool) string{fullLine, shortLine, nameLine} {
		if text, fits := lines(tools, line, budget); fits {
			return head + text
		}
	}
	return head + page(u, tools, budget)
}

// listings are the listings of whole upstreams, made once for each state that an
// upstream is in.
type listings struct{ made sync.Map } // by name: *listed

type listed struct {
	upstream *registry.Upstream
	text     string
}

func (l *listings) of(u *registry.Upstream, budget int) string {
	if last, ok := l.made.Load(u.Name); ok && last.(*listed).upstream == u {
		return last.(*listed).text
	}
	text := listing(u, u.Tools, budget)
	l.made.Store(u.Name, &listed{u, text})
	return text
}

// heading says what is listed. It costs a line and at most budget tokens.
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

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// lines writes every tool; fits is false as soon as the budget is spent.
func lines(tools []*registry.Tool, line func(*registry.Tool) string, budget int) (text string, fits bool) {
	var b strings.Builder
	for _, t := range tools {
		l := line(t)
		if budget -= tokens.Estimate(l) + 1; budget < 0 {
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

// page writes as many names as fit, and how to see the others.
func page(u *registry.Upstream, tools []*registry.Tool, budget int) string {
	more := func(left int) string {
		return fmt.Sprintf("… %d more: inspect(%q, \"word*\"), or exec(%q, \"search\", {\"query\": …})", left, u.Name, Builtin)
	}
	budget -= tokens.Estimate(more(len(tools)))
	var b strings.Builder
	shown := 0
	for _, t := range tools {
		line := nameLine(t)
		if budget -= tokens.Estimate(line) + 1; budget < 0 {
			break
		}
		shown++
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String() + more(len(tools)-shown)
}

// sentence is the first sentence of a description, on one line.
func sentence(description string) string {
	text := strings.TrimSpace(description)
	if i := strings.IndexAny(text, "\n\r"); i >= 0 {
		text = strings.TrimSpace(text[:i])
	}
	for i := 0; i < len(text); i++ {
		if text[i] == '.' && i+1 < len(text) && text[i+1] == ' ' && !abbreviation(text[:i]) {
			text = text[:i]
			break
		}
	}
	return plain.Cut(strings.TrimSuffix(plain.Line(text), "."), sentenceBytes)
}

// abbreviation reports whether a text ends in one, so that the full stop behind
// it ends no sentence.
func abbreviation(text string) bool {
	for _, a := range []string{"e.g", "i.e", "etc", " vs", "approx"} {
		if strings.HasSuffix(text, a) {
			return true
		}
	}
	return false
}

// match lists the tools that a pattern names: a glob, a name, or a comma list of
// both, in the order of the upstream.
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
