package results

import (
	"context"
	"fmt"
	"io"
	"iter"
	"regexp"
	"regexp/syntax"
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
}

// line is one line or value. place returns its number or its JSON Pointer.
type line struct {
	place func() string
	text  string
}

// linesOf returns the lines of a text.
func linesOf(text string) searched {
	return searched{"line", len(text), func(yield func(line) bool) {
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
	return searched{"value", size, func(yield func(line) bool) {
		for n := range f.each() {
			for scalar := range n.Scalars() {
				if !yield(line{func() string { return locator.Pointer(scalar) }, scalar.Text()}) {
					return
				}
			}
		}
	}}
}

// grep returns the lines or values that match. Offset and limit count matches.
func (t *Table) grep(ctx context.Context, in searched, q Query) (string, error) {
	pattern, err := compile(q.Grep, in.bytes)
	if err != nil {
		return "", fmt.Errorf("grep: %w", err)
	}
	g := grepper{budget: t.budget() - positionCost, context: min(max(q.Context, 0), maxContext)}
	watch := work.NewWatch(ctx)
	total := 0
	for l := range in.lines {
		total++
		at := pattern.find(watch, l.text)
		if watch.IsOver() {
			break
		}
		if at == nil {
			g.other(l)
			continue
		}
		if g.matched++; g.matched > q.Offset && !g.isFull && (q.Limit <= 0 || g.shown < q.Limit) {
			g.match(l, at)
		}
	}
	return g.text.String() + g.position(max(q.Offset, 0), plain.Count(total, in.unit)), watch.Err()
}

// Limits of a pattern. Matching takes up to about 10 ns for each byte of the text and each
// instruction of the compiled pattern.
const (
	maxPattern   = 4 << 10 // bytes
	maxMatching  = 2 << 30 // bytes times instructions
	longMatching = 4 << 20 // from this size on, matching a single line can be stopped
)

// pattern is a compiled pattern.
type pattern struct {
	*regexp.Regexp
	size int // instructions
}

// compile returns a pattern for a text with a number of bytes, unless matching might take
// too long.
func compile(text string, size int) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("the pattern has more than %d bytes; use a shorter one", maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("not an RE2 pattern: %w", err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("not an RE2 pattern: %w", err)
	}
	if len(program.Inst) > maxMatching/max(size, 1) {
		return nil, fmt.Errorf("the pattern is too complex for a text of %s bytes; use a simpler one, or fewer repetitions like {100}", plain.Number(size))
	}
	compiled, err := regexp.Compile(text)
	return &pattern{compiled, len(program.Inst)}, err
}

// find returns where a line matches, nil if it does not. It reads a long line rune by rune,
// because only then it can stop when the work is canceled.
func (p *pattern) find(w *work.Watch, line string) []int {
	if len(line)*p.size < longMatching {
		return p.FindStringIndex(line)
	}
	if word := p.String(); regexp.QuoteMeta(word) == word {
		if at := strings.Index(line, word); at >= 0 {
			return []int{at, at + len(word)}
		}
		return nil
	}
	return p.FindReaderIndex(&runes{w, strings.NewReader(line)})
}

// runes reads the characters of a line. It ends early if the work is canceled.
type runes struct {
	watch *work.Watch
	*strings.Reader
}

// ReadRune implements io.RuneReader.
func (r *runes) ReadRune() (char rune, size int, err error) {
	if r.watch.IsOver() {
		return 0, 0, io.EOF
	}
	return r.Reader.ReadRune()
}

// grepper collects the lines of an answer.
type grepper struct {
	text    strings.Builder
	budget  int // tokens left
	context int // lines before and after a match
	before  []line
	after   int  // lines that still belong to the last match
	isFull  bool // the next match did not fit
	matched int
	shown   int // matches
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
	g.before, g.after = nil, g.context
}

// other handles a line without a match, which may be near one.
func (g *grepper) other(l line) {
	if g.context == 0 {
		return
	}
	if g.after > 0 && !g.isFull {
		g.after--
		entry := l.place() + "- " + around(l.text, []int{0, 0}) + "\n"
		if cost := tokens.Count(entry) + 1; cost <= g.budget {
			g.budget -= cost
			g.text.WriteString(entry)
			return
		}
	}
	if g.before = append(g.before, l); len(g.before) > g.context {
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
