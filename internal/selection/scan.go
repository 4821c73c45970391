package selection

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// forms says what select has. Every error ends with it.
const forms = `select has FIELDS [by PATH] [from /RE2/ as a, b] [where …] [order by PATH [desc]] [limit N]; ` +
	`FIELDS: PATH [as NAME], *, count, sum|min|max|avg PATH; where: = != < <= > >= ~ in (a, b), and, or, not, ( )`

// syntaxError returns the error for a query that cannot be read at a character, counted
// from 1.
func syntaxError(position int, text string) error {
	return fmt.Errorf("select: at character %d: %s; %s", position, text, forms)
}

// parser reads a query from left to right.
type parser struct {
	text       string
	at         int
	depth      int // open parentheses
	conditions int
	isInner    bool // the query is in a reference of another one
}

// The parts of a query.
var (
	digits     = regexp.MustCompile(`^[0-9]+`)
	bareName   = regexp.MustCompile(`^[^ ,.\[\]()"'=!<>~\t\r\n]+`)
	quotedText = regexp.MustCompile(`(?s)^(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')`)
	escapes    = regexp.MustCompile(`(?s)\\(.)`) // each takes the next character as it is
	operator   = regexp.MustCompile(`^(?:<>|[!<>=]=|[=<>~])`)
	captured   = regexp.MustCompile(`(?is)^/(.*?)/\s+as\s`) // a pattern may have slashes
)

// match reads what a pattern matches.
func (p *parser) match(pattern *regexp.Regexp) string {
	found := pattern.FindString(p.text[p.at:])
	p.at += len(found)
	return found
}

// path reads one path.
func (p *parser) path() (Path, error) {
	var path Path
	for {
		next, ok := p.bracket()
		if !ok {
			next.name, ok = p.name()
		}
		if !ok {
			return nil, p.unexpected("a field")
		}
		path = append(path, next)
		switch {
		case p.peekSign("["):
		case p.peekSign("."):
			p.at++
		default:
			return path, nil
		}
	}
}

// bracket reads [], [*], [3] or ["a name"].
func (p *parser) bracket() (next step, ok bool) {
	start := p.at
	if !p.peekSign("[") {
		return step{}, false
	}
	p.at++
	p.skipSpace()
	if next.name, ok = p.quoted(); !ok {
		if next.name = p.match(digits); next.name == "" {
			p.sign("*")
			next = every
		}
	}
	if !p.sign("]") {
		p.at = start
		return step{}, false
	}
	return next, true
}

// name reads a name, bare or quoted.
func (p *parser) name() (string, bool) {
	p.skipSpace()
	if name, ok := p.quoted(); ok {
		return name, true
	}
	name := p.match(bareName)
	return name, name != ""
}

// quoted reads a text in double or single quotes.
func (p *parser) quoted() (string, bool) {
	found := quotedText.FindStringSubmatch(p.text[p.at:])
	if found == nil {
		return "", false
	}
	p.at += len(found[0])
	return escapes.ReplaceAllString(found[1]+found[2], "$1"), true
}

// word reads a value up to the next white space. In parentheses it ends at the closing one,
// and in a list at a comma.
func (p *parser) word(isList bool) string {
	start, opened := p.at, 0
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		switch {
		case unicode.IsSpace(r) || unicode.Is(unicode.Z, r), r == ',' && isList:
			return p.text[start:p.at]
		case r == '(':
			opened++
		case r == ')':
			if opened--; opened < 0 && (isList || p.depth > 0) {
				return p.text[start:p.at]
			}
		}
		p.at += size
	}
	return p.text[start:]
}

// keyword reads a word in any case.
func (p *parser) keyword(word string) bool {
	start := p.skipSpace()
	if name, _ := p.name(); strings.EqualFold(p.text[start:p.at], word) && name != "" {
		return true
	}
	p.at = start
	return false
}

// peekKeyword reports whether one of some words is next.
func (p *parser) peekKeyword(words ...string) bool {
	start := p.at
	defer func() { p.at = start }()
	for _, word := range words {
		if p.keyword(word) {
			return true
		}
	}
	return false
}

func (p *parser) sign(sign string) bool {
	p.skipSpace()
	if !p.peekSign(sign) {
		return false
	}
	p.at += len(sign)
	return true
}

func (p *parser) peekSign(sign string) bool { return strings.HasPrefix(p.text[p.at:], sign) }

// skipSpace skips white space and returns the position after it.
func (p *parser) skipSpace() int {
	p.at = len(p.text) - len(strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace))
	return p.at
}

func (p *parser) atEnd() bool { return p.skipSpace() == len(p.text) }

// unexpected returns the error for the text at the parser's position.
func (p *parser) unexpected(want string) error {
	p.skipSpace()
	found := "the end"
	if rest := strings.Fields(p.text[p.at:]); len(rest) > 0 {
		found = quoted(rest[0])
	}
	return p.problem("expected " + want + ", found " + found)
}

// problem returns an error at the parser's position.
func (p *parser) problem(text string) error {
	return syntaxError(utf8.RuneCountInString(p.text[:p.at])+1, text)
}
