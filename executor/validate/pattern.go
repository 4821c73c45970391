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
	categories := len(category.FindAllString(text, -1))
	if !ok || foldsUnicode.MatchString(ecma) || r.patternSteps+categories*categorySize > maxPatternSteps {
		return nil, false
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
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
	p = &pattern{re, ecma, len(program.Inst), categories}
	r.patterns[ecma] = p
	r.patternSteps += len(program.Inst) + categories*categorySize
	return p, true
}

// A category of Unicode takes as long to compile as this many instructions.
const categorySize = 500

var (
	category = regexp.MustCompile(`\\[pP]`)

	// foldsUnicode matches patterns that ignore case, also beyond ASCII. One class of characters
	// can take 10 ms to compile.
	foldsUnicode = regexp.MustCompile(`\(\?[a-zA-Z-]*i(?s:.*)(?:\\[upP]|[^\x00-\x7f])`)
)

// patternToken matches one character or escape of a pattern. It does not match
// back-references, and letters that mean something else in Go.
var patternToken = regexp.MustCompile(`(?s)^(?:\\u([0-9a-fA-F]{4}|\{[0-9a-fA-F]{1,6}\})|` +
	`\\(?:[dDwWsSbBtnrvf]|x[0-9a-fA-F]{2}|[pP]\{\w+\}|[^0-9A-Za-z])|\[\^?|[^\\])`)

// goPattern rewrites an ECMA-262 pattern, as JSON Schema uses it, for Go's regexp. ok
// is false where Go has no such pattern (look-ahead), or where it might refuse
// what ECMA-262 accepts.
func goPattern(ecma string) (re string, ok bool) {
	if ecma == "" || len(ecma) > maxPatternBytes {
		return "", false
	}
	inClass, isNegated := false, false // inside [], inside [^]
	for rest := ecma; rest != ""; {
		found := patternToken.FindStringSubmatch(rest)
		if found == nil {
			return "", false
		}
		token := found[0]
		rest = rest[len(token):]
		switch {
		case found[1] != "":
			code, _ := strconv.ParseUint(strings.Trim(found[1], "{}"), 16, 32)
			if utf16.IsSurrogate(rune(code)) {
				return "", false
			}
			token = fmt.Sprintf(`\x{%x}`, code)
		case token == `\s` && inClass:
			token = moreSpace
		case token == `\s`:
			token = "[" + moreSpace + "]"
		case token == `\S` && !inClass:
			token = "[^" + moreSpace + "]"
		case token == `\S` && isNegated: // Go's \S is the larger set
			return "", false
		case inClass && token == "[" && strings.HasPrefix(rest, ":"): // a POSIX class in Go
			return "", false
		case inClass:
			inClass = token != "]"
		case token[0] == '[':
			inClass, isNegated = true, token == "[^"
			if strings.HasPrefix(rest, "]") { // nothing, or anything, in ECMA-262
				return "", false
			}
		}
		re += token
	}
	return re, true
}
