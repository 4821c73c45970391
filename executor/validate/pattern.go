package validate

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf16"
)

const (
	maxPatternBytes = 2 << 10
	maxPatternSteps = 50_000 // for all patterns of a schema together: a short one can compile to a large program
)

// moreSpace is what \s matches in ECMA-262, written for use inside []. Go matches less.
const moreSpace = `\s\v\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`

// pattern rewrites a pattern with goPattern and compiles it. ok is false where that
// is not possible, or where the patterns of the schema get too large.
func (r *reducer) pattern(ecma string) (p *pattern, ok bool) {
	if p = r.patterns[ecma]; p != nil {
		return p, true
	}
	text, ok := goPattern(ecma)
	parsed, err := syntax.Parse(text, syntax.Perl)
	if !ok || err != nil {
		return nil, false
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || r.patternSteps+len(program.Inst) > maxPatternSteps {
		return nil, false
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, false
	}
	p = &pattern{re, ecma}
	r.patterns[ecma] = p
	r.patternSteps += len(program.Inst)
	return p, true
}

// goPattern rewrites an ECMA-262 pattern, as JSON Schema uses it, for Go's regexp. ok
// is false where Go has no such pattern (look-ahead), or where it might refuse
// what ECMA-262 accepts.
func goPattern(ecma string) (re string, ok bool) {
	if ecma == "" || len(ecma) > maxPatternBytes {
		return "", false
	}
	p := patternReader{rest: ecma}
	for p.rest != "" {
		if !p.step() {
			return "", false
		}
	}
	return p.out.String(), true
}

type patternReader struct {
	rest    string
	out     strings.Builder
	class   bool // inside []
	negated bool // inside [^]
}

// step reads one character or escape.
func (p *patternReader) step() bool {
	switch {
	case p.rest[0] == '\\':
		return p.escape()
	case p.class:
		p.class = p.rest[0] != ']'
		if strings.HasPrefix(p.rest, "[:") { // a POSIX class in Go
			return false
		}
	case p.rest[0] == '[':
		p.class = true
		p.negated = strings.HasPrefix(p.rest, "[^")
		if p.negated {
			p.take(1)
		}
		if strings.HasPrefix(p.rest[1:], "]") { // nothing, or anything, in ECMA-262
			return false
		}
	}
	p.take(1)
	return true
}

func (p *patternReader) take(n int) {
	p.out.WriteString(p.rest[:n])
	p.rest = p.rest[n:]
}

// replace writes text for the next n bytes.
func (p *patternReader) replace(n int, text string) bool {
	p.out.WriteString(text)
	p.rest = p.rest[n:]
	return true
}

var (
	unicodeEscape = regexp.MustCompile(`^\\u([0-9a-fA-F]{4}|\{[0-9a-fA-F]{1,6}\})`)
	sameEscape    = regexp.MustCompile(`^\\([dDwWbBtnrvf]|x[0-9a-fA-F]{2}|[pP]\{\w+\}|[^0-9A-Za-z])`)
)

func (p *patternReader) escape() bool {
	if m := unicodeEscape.FindStringSubmatch(p.rest); m != nil {
		code, _ := strconv.ParseUint(strings.Trim(m[1], "{}"), 16, 32)
		if utf16.IsSurrogate(rune(code)) {
			return false
		}
		return p.replace(len(m[0]), fmt.Sprintf(`\x{%x}`, code))
	}
	if m := sameEscape.FindString(p.rest); m != "" {
		p.take(len(m))
		return true
	}
	switch {
	case strings.HasPrefix(p.rest, `\s`) && p.class:
		return p.replace(2, moreSpace)
	case strings.HasPrefix(p.rest, `\s`):
		return p.replace(2, "["+moreSpace+"]")
	case strings.HasPrefix(p.rest, `\S`) && p.class:
		// Go's \S is the larger set: right as long as it is not negated.
		p.take(2)
		return !p.negated
	case strings.HasPrefix(p.rest, `\S`):
		return p.replace(2, "[^"+moreSpace+"]")
	}
	return false // a back-reference, or a letter that means something else in Go
}
