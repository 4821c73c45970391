package results

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/work"
)

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

// captures returns where a line and the groups of the pattern match, nil if they do not.
func (p *pattern) captures(w *work.Watch, line string) []int {
	if len(line)*p.size < longMatching {
		return p.FindStringSubmatchIndex(line)
	}
	return p.FindReaderSubmatchIndex(&runes{w, strings.NewReader(line)})
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
