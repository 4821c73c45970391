package results

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/internal/work"
)

// maxLine limits a line in an answer, in bytes; the part around the match is shown.
const maxLine = 300

// maxContext limits the lines before and after a match.
const maxContext = 20

// searched are the lines of a text, or the scalar values of JSON.
type searched struct {
	unit  string // "line" or "value"
	bytes int    // in all
	lines iter.Seq[line]
	names func(*work.Watch, *pattern) string // says which names match; nil: there are none
}

// line is one line or value. place returns its number or its JSON Pointer.
type line struct {
	place func() string
	text  string
}

// linesOf returns the lines of a text.
func linesOf(text string) searched {
	return searched{unit: "line", bytes: len(text), lines: func(yield func(line) bool) {
		number := 0
		for l := range strings.Lines(text) {
			number++
			at := number
			if !yield(line{func() string { return strconv.Itoa(at) }, strings.TrimRight(l, "\r\n")}) {
				return
			}
		}
	}}
}

// valuesIn returns the scalar values in some values of a result.
func valuesIn(f *found) searched {
	locator := rawjson.NewLocator(f.root)
	size := 0
	for n := range f.each() {
		size += len(n.Raw())
	}
	names := func(w *work.Watch, p *pattern) string { return namesIn(w, f, p) }
	return searched{unit: "value", bytes: size, names: names, lines: func(yield func(line) bool) {
		for n := range f.each() {
			for scalar := range n.Scalars() {
				if !yield(line{func() string { return locator.Pointer(scalar) }, scalar.Text()}) {
					return
				}
			}
		}
	}}
}

// grep returns the lines or values that match, within a budget of tokens. Offset and limit
// count matches.
func (t *Table) grep(ctx context.Context, in searched, q Query, budget int) (string, error) {
	pattern, err := compile(q.Grep, in.bytes)
	if err != nil {
		return "", fmt.Errorf("grep: %w", err)
	}
	watch := work.NewWatch(ctx)
	skip := q.Offset
	if skip < 0 {
		skip = max(0, skip+in.count(watch, pattern))
	}
	g := grepper{budget: budget - positionCost, beforeLines: min(max(q.Before, 0), maxContext), afterLines: min(max(q.After, 0), maxContext)}
	total := 0
	for l := range in.lines {
		total++
		at := pattern.find(watch, l.text)
		if watch.IsOver() {
			break
		}
		if at != nil {
			g.matched++
		}
		if at == nil || g.matched <= skip || g.isFull || q.Limit > 0 && g.shown >= q.Limit {
			g.other(l)
			continue
		}
		g.match(l, at)
	}
	names := ""
	if g.matched == 0 && in.names != nil {
		names = in.names(watch, pattern)
	}
	return g.text.String() + g.position(skip, plain.Count(total, in.unit)+names), watch.Err()
}

// count returns the number of lines or values that match.
func (in searched) count(w *work.Watch, p *pattern) (count int) {
	for l := range in.lines {
		if p.find(w, l.text) != nil {
			count++
		}
		if w.IsOver() {
			break
		}
	}
	return count
}

// grepper collects the lines of an answer.
type grepper struct {
	text    strings.Builder
	budget  int // tokens left
	before  []line
	after   int  // lines that still belong to the last match
	isFull  bool // the next match did not fit
	matched int
	shown   int // matches

	beforeLines, afterLines int // lines before and after a match
}

// match adds a match and the lines before it.
func (g *grepper) match(l line, at []int) {
	var b strings.Builder
	for _, before := range g.before {
		b.WriteString(before.place() + "- " + around(before.text, []int{0, 0}) + "\n")
	}
	b.WriteString(l.place() + ": " + around(l.text, at) + "\n")
	entry := b.String()
	if g.shown == 0 { // show at least a part, or the reader would be stuck
		if end := tokens.Cut(entry, g.budget-2); end < len(entry) {
			entry = entry[:end] + "\n"
		}
	}
	if g.budget -= tokens.Count(entry) + 1; g.budget < 0 {
		g.isFull = true
		return
	}
	g.text.WriteString(entry)
	g.shown++
	g.before, g.after = nil, g.afterLines
}

// other handles a line that is not shown as a match, but may be near one.
func (g *grepper) other(l line) {
	if g.after > 0 && !g.isFull {
		g.after--
		entry := l.place() + "- " + around(l.text, []int{0, 0}) + "\n"
		if cost := tokens.Count(entry) + 1; cost <= g.budget {
			g.budget -= cost
			g.text.WriteString(entry)
			return
		}
	}
	if g.before = append(g.before, l); len(g.before) > g.beforeLines {
		g.before = g.before[1:]
	}
}

// position returns the last line of an answer.
func (g *grepper) position(skipped int, in string) string {
	switch next := skipped + g.shown; {
	case g.matched == 0:
		return fmt.Sprintf("[no match in %s]", in)
	case g.shown == 0:
		return fmt.Sprintf("[%s in %s; with grep, offset and limit count matches: offset %d is past the end]", plain.Count(g.matched, "match"), in, skipped)
	case next < g.matched:
		return fmt.Sprintf("[matches %d-%d of %d in %s; with grep, offset and limit count matches: next offset %d]", skipped+1, next, g.matched, in, next)
	default:
		return fmt.Sprintf("[matches %d-%d of %d in %s; end]", skipped+1, next, g.matched, in)
	}
}

// around returns the part of a line around a match, on one line.
func around(text string, match []int) string {
	if len(text) <= maxLine {
		return plain.Line(text)
	}
	// A third of the room is for the text before the match.
	start := plain.RuneStart(text, max(0, min(match[0]-maxLine/3, len(text)-maxLine)))
	end := plain.RuneStart(text, start+maxLine)
	short := plain.Line(text[start:end])
	if start > 0 {
		short = "…" + short
	}
	if end < len(text) {
		short += "…"
	}
	return short
}
