// Package listing shows tools and servers to models and clients: the texts of inspect, each
// within a budget of tokens, and the names that tools, prompts and resources have on the
// front (Exposure). It calls nothing and never waits.
package listing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpx/config"
	"mcpx/internal/plain"
	"mcpx/internal/tokens"
	"mcpx/registry"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// Builtin is the name of the built-in server.
const Builtin = "mcpx"

// instructionBytes bounds the part of an upstream's instructions in a listing.
const instructionBytes = 600

// listing returns a list of an upstream's tools, one per line, in the most detailed form
// that fits the budget of tokens: signatures and sentences, required parameters with
// types and sentences, names of required parameters, names of tools, or only the first
// names. Every form except the first says how to see more.
func listing(u *live.Upstream, tools []*lists.Tool, budget int) string {
	head := heading(u, len(tools), budget/4)
	common := sharedBy(tools)
	steps := []struct {
		line  func(*lists.Tool) string
		above string
	}{{common.fullLine, common.line()}, {common.typedLine, common.line()}, {shortLine, ""}, {nameLine, ""}}
	hint := ""
	for _, step := range steps {
		text, ok := lines(tools, step.line, budget)
		if text = head + step.above + text + hint; ok && tokens.Count(text) <= budget {
			return text
		}
		hint = fmt.Sprintf("\n… shortened; more: inspect(%q, \"word*\") or inspect(%q, \"tool\")", u.Name, u.Name)
	}
	var names []string
	for _, t := range tools {
		names = append(names, nameLine(t))
	}
	search := fmt.Sprintf("exec(%q, \"search\", {\"query\": …})", Builtin)
	more := fmt.Sprintf("inspect(%q, \"word*\"), or %s", u.Name, search)
	room := budget - tokens.Count(head) - joinCost
	if tokens.Exceeds(moreLine(len(tools), more), room) { // the server's name is long
		more = search
	}
	return head + page(names, more, room)
}

// listingKey is the key of a listing that is derived from a catalog.
type listingKey struct {
	upstream string
	budget   int
}

// Whole returns the listing of all tools of an upstream. The catalog keeps it, unless the
// upstream is idle: then it says how old it is.
func Whole(catalog *registry.Catalog, u *live.Upstream, budget int) string {
	if u.State == live.Idle || catalog.Upstream(u.Name) != u {
		return listing(u, u.Tools, budget)
	}
	from := func(*registry.Catalog) any { return listing(u, u.Tools, budget) }
	return catalog.Derived(listingKey{u.Name, budget}, from).(string)
}

// heading returns the first line of a listing: the upstream, its number of tools, its
// state and its instructions. It has at most budget tokens.
func heading(u *live.Upstream, shown, budget int) string {
	u = u.Shown()
	head := fmt.Sprintf("%s: %s", u.Name, plain.Count(len(u.Tools), "tool"))
	if shown != len(u.Tools) {
		head += fmt.Sprintf(", %d shown", shown)
	}
	if note := StateNote(u); note != "" {
		head += " (" + note + ")"
	}
	if note := u.Note(); note != "" {
		head += "; " + note
	}
	if u.Instructions != "" {
		head += "; " + plain.Cut(plain.Joined(u.Instructions), instructionBytes)
	}
	return tokens.Shorten(head, budget-1) + "\n"
}

// StateNote returns the state of an upstream that is not ready, and the reason; "" if it is ready.
func StateNote(u *live.Upstream) string {
	switch {
	case u.State == live.Ready:
		return ""
	case u.State == live.Idle:
		return idleNote(u)
	case u.NeedsPerson():
		return plain.Cut(u.Reason, instructionBytes)
	case u.Reason == "":
		return string(u.State)
	}
	return fmt.Sprintf("%s: %s", u.State, plain.Cut(u.Reason, instructionBytes))
}

// idleNote says how old the lists of a stopped upstream are.
func idleNote(u *live.Upstream) string {
	note := "not running"
	if !u.ListedAt.IsZero() {
		note = fmt.Sprintf("listed %s ago, not running", Age(time.Since(u.ListedAt)))
	}
	if u.Reason != "" {
		note += "; last start: " + plain.Cut(u.Reason, instructionBytes)
	}
	return note
}

// Age returns a duration in words, in its largest unit.
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// lines returns one line for every item. ok is false if they cannot fit the budget.
func lines[T any](items []T, line func(T) string, budget int) (text string, ok bool) {
	var b strings.Builder
	spent := 0
	for _, item := range items {
		l := line(item)
		if spent += tokens.Count(l); spent > 2*budget { // the caller counts the whole text
			return "", false
		}
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n"), true
}

// FullLine returns the most detailed line of a tool: its signature and a sentence.
func FullLine(t *lists.Tool) string { return shared{}.fullLine(t) }

// SentenceLine returns the name of a tool and a sentence.
func SentenceLine(t *lists.Tool) string { return shared{}.withSentence(nameLine(t), t) }

func shortLine(t *lists.Tool) string { return nameLine(t) + "(" + t.RequiredParameters() + ")" }

func nameLine(t *lists.Tool) string { return Name(t.Name) }

// page returns as many names as fit, and how to see the others.
func page(names []string, more string, budget int) string {
	text := strings.Join(names, "\n") + "\n"
	text = text[:tokens.Cut(text, budget-tokens.Count(moreLine(len(names), more))-joinCost)]
	text = text[:strings.LastIndexByte(text, '\n')+1]
	return text + moreLine(len(names)-strings.Count(text, "\n"), more)
}

func moreLine(left int, more string) string { return fmt.Sprintf("… %d more: %s", left, more) }

// joinCost is more than two texts cost together than apart.
const joinCost = 4

// match returns the tools that a pattern matches, in the upstream's order. A pattern is
// a name, a glob, or a comma-separated list of these.
func match(u *live.Upstream, pattern string) []*lists.Tool {
	var found []*lists.Tool
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
