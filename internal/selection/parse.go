package selection

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a query. No model writes more.
const (
	maxQuery      = 4 << 10 // bytes
	maxConditions = 50
	maxFields     = 100
)

// example is a right query, shown in every error.
const example = "number, title, user.login where state = open and comments > 5 limit 20"

// syntaxError returns the error for a query that cannot be read at a character, counted
// from 1.
func syntaxError(position int, text string) error {
	return fmt.Errorf("select: at character %d: %s; example: %s", position, text, example)
}

// Parse reads a query:
//
//	PATHS [where PATH OP VALUE [and PATH OP VALUE]...] [limit N]
//
// PATHS are paths with commas between them, or * for all fields, or count for the number
// of rows. OP is =, !=, <, <=, >, >= or ~ (contains, ignoring case). Names and values
// with spaces or signs are quoted. A query /pattern/ has an RE2 pattern.
func Parse(text string) (*Query, error) {
	if len(text) > maxQuery {
		return nil, syntaxError(maxQuery, "the query is too long")
	}
	if trimmed := strings.TrimSpace(text); len(trimmed) > 1 && trimmed[0] == '/' && trimmed[len(trimmed)-1] == '/' {
		pattern := trimmed[1 : len(trimmed)-1]
		if _, err := regexp.Compile(pattern); err != nil {
			return nil, syntaxError(1, fmt.Sprintf("not an RE2 pattern: %v", err))
		}
		return &Query{Pattern: pattern}, nil
	}
	p := parser{text: text}
	return p.query()
}

// ParsePath reads one path, like items[3].title.
func ParsePath(text string) (Path, error) {
	if len(text) > maxQuery {
		return nil, syntaxError(maxQuery, "the path is too long")
	}
	p := parser{text: text}
	path, err := p.path()
	if err == nil && !p.atEnd() {
		err = p.unexpected("the end of the path")
	}
	return path, err
}

// parser reads a query from left to right.
type parser struct {
	text string
	at   int
}

func (p *parser) query() (*Query, error) {
	q := &Query{limit: -1}
	if err := p.fields(q); err != nil {
		return nil, err
	}
	if p.keyword("where") {
		if err := p.conditions(q); err != nil {
			return nil, err
		}
	}
	if p.keyword("limit") {
		if err := p.limit(q); err != nil {
			return nil, err
		}
	}
	switch {
	case p.atEnd():
		return q, nil
	case q.limit >= 0:
		return nil, p.unexpected("the end")
	case len(q.where) > 0:
		return nil, p.unexpected(`"and", "limit" or the end (quote a value that has spaces)`)
	}
	return nil, p.unexpected(`",", "where", "limit" or the end`)
}

// fields reads PATHS.
func (p *parser) fields(q *Query) error {
	p.keyword("select") // as in SQL
	switch {
	case p.atEnd():
		return p.unexpected("a field")
	case p.sign("*"):
		q.isAll = true
		return nil
	}
	for {
		start := p.skipSpace()
		path, err := p.path()
		if err != nil {
			return err
		}
		if len(q.fields) == maxFields {
			return p.unexpected(fmt.Sprintf("at most %d fields", maxFields))
		}
		q.fields = append(q.fields, path)
		isCount := strings.EqualFold(p.text[start:p.at], "count") // a field of that name is quoted
		if p.sign(",") {
			continue
		}
		if isCount && len(q.fields) == 1 {
			q.fields, q.isCount = nil, true
			p.sign("(*)") // as in SQL
		}
		return nil
	}
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

// The parts of a query.
var (
	digits     = regexp.MustCompile(`^[0-9]+`)
	bareName   = regexp.MustCompile(`^[^ ,.\[\]()"'=!<>~\t\r\n]+`)
	bareValue  = regexp.MustCompile(`^[^\s\v\x{85}\p{Z}]+`)
	quotedText = regexp.MustCompile(`(?s)^(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')`)
	escapes    = regexp.MustCompile(`(?s)\\(.)`) // each takes the next character as it is
	operator   = regexp.MustCompile(`^(?:[!<>=]=|[=<>~])`)
)

// match reads what a pattern matches.
func (p *parser) match(pattern *regexp.Regexp) string {
	found := pattern.FindString(p.text[p.at:])
	p.at += len(found)
	return found
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

func (p *parser) conditions(q *Query) error {
	for {
		c, err := p.condition()
		if err != nil {
			return err
		}
		if len(q.where) == maxConditions {
			return p.unexpected(fmt.Sprintf("at most %d conditions", maxConditions))
		}
		q.where = append(q.where, c)
		if !p.keyword("and") {
			return nil
		}
	}
}

func (p *parser) condition() (c condition, err error) {
	if p.skipSpace(); p.atEnd() {
		return c, p.unexpected("a field to compare")
	}
	if c.path, err = p.path(); err != nil {
		return c, err
	}
	p.skipSpace()
	if c.operator = strings.Replace(p.match(operator), "==", "=", 1); c.operator == "" { // == is = in many languages
		return c, p.unexpected("one of = != < <= > >= ~")
	}
	return c, p.value(&c)
}

// value reads the value of a condition: quoted, or a word up to the next white space.
func (p *parser) value(c *condition) error {
	start := p.skipSpace()
	if c.value, c.isQuoted = p.quoted(); c.isQuoted {
		return nil
	}
	c.value = p.match(bareValue)
	if c.value == "" {
		return p.unexpected(fmt.Sprintf("a value after %q", c.operator))
	}
	if strings.ContainsAny(c.value[:1], `"'`) {
		p.at = start
		return p.unexpected("a closing quotation mark")
	}
	return nil
}

func (p *parser) limit(q *Query) error {
	start := p.skipSpace()
	name, _ := p.name()
	n, err := strconv.Atoi(name)
	if err != nil || n < 0 {
		p.at = start
		return p.unexpected("a number of rows")
	}
	q.limit = n
	return nil
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
	return syntaxError(utf8.RuneCountInString(p.text[:p.at])+1, "expected "+want+", found "+found)
}
