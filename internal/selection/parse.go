package selection

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Limits of a query. No model writes more.
const (
	maxQuery      = 4 << 10 // bytes
	maxConditions = 50
	maxFields     = 100
)

// Parse reads a query:
//
//	FIELDS [by PATH[, PATH]] [from /RE2/ as NAMES] [where CONDITION] [order by PATH [desc]] [limit N]
//
// FIELDS are * for all fields, or paths and functions with commas between them: count, sum
// PATH, min PATH, max PATH, avg PATH, each with "as NAME". With "from", the rows are the
// captures of a pattern in the lines of a text; FIELDS may then be missing before it. A query
// /pattern/ has only an RE2 pattern. Names and values with spaces or signs are quoted.
func Parse(text string) (*Query, error) { return parse(parser{text: text}) }

func parse(p parser) (*Query, error) {
	if len(p.text) > maxQuery {
		return nil, syntaxError(maxQuery, "the query is too long")
	}
	pattern, isPattern := patternOf(p.text)
	if isPattern && !captured.MatchString(strings.TrimSpace(p.text)) {
		return patternQuery(pattern)
	}
	q, err := p.query()
	if err != nil && isPattern {
		return patternQuery(pattern)
	}
	return q, err
}

// patternOf returns the pattern of a query /pattern/.
func patternOf(text string) (pattern string, ok bool) {
	text = strings.TrimSpace(text)
	if len(text) < 2 || text[0] != '/' || text[len(text)-1] != '/' {
		return "", false
	}
	return text[1 : len(text)-1], true
}

func patternQuery(pattern string) (*Query, error) {
	if pattern == "" {
		return nil, syntaxError(1, "the pattern is empty")
	}
	if _, err := regexp.Compile(pattern); err != nil {
		return nil, syntaxError(1, fmt.Sprintf("not an RE2 pattern: %v", err))
	}
	return &Query{Pattern: pattern, limit: -1}, nil
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

// query reads all parts of a query.
func (p *parser) query() (*Query, error) {
	q := &Query{limit: -1}
	p.keyword("select") // as in SQL
	if p.skipSpace(); !captured.MatchString(p.text[p.at:]) {
		if err := p.fields(q); err != nil {
			return nil, err
		}
	} else if err := p.captures(q); err != nil {
		return nil, err
	}
	if err := p.middle(q); err != nil {
		return nil, err
	}
	if err := q.check(p); err != nil {
		return nil, err
	}
	if err := p.order(q); err != nil {
		return nil, err
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
	case q.where != nil:
		return nil, p.unexpected(`"and", "or", "order by", "limit" or the end (quote a value that has spaces)`)
	}
	return nil, p.unexpected(`",", "as", "by", "from", "where", "order by", "limit" or the end`)
}

// middle reads by, from and where, which may come in any order.
func (p *parser) middle(q *Query) (err error) {
	for err == nil {
		switch {
		case len(q.by) == 0 && p.groupBy():
			err = p.groups(q)
		case q.from == "" && p.keyword("from"):
			if p.skipSpace(); !captured.MatchString(p.text[p.at:]) {
				return p.unexpected("/RE2/ as NAME, NAME")
			}
			err = p.captures(q)
		case q.where == nil && p.keyword("where"):
			q.where, err = p.anyOf()
		default:
			return nil
		}
	}
	return err
}

// groupBy reads "by", or "group by" as in SQL.
func (p *parser) groupBy() bool {
	start := p.at
	if p.keyword("group"); p.keyword("by") {
		return true
	}
	p.at = start
	return false
}

// fields reads FIELDS.
func (p *parser) fields(q *Query) error {
	switch {
	case p.atEnd():
		return p.unexpected("a field")
	case p.sign("*"):
		q.isAll = true
		return nil
	}
	for {
		c, err := p.column()
		if err != nil {
			return err
		}
		if len(q.columns) == maxFields {
			return p.unexpected(fmt.Sprintf("at most %d fields", maxFields))
		}
		if p.keyword("as") {
			var ok bool
			if c.as, ok = p.name(); !ok {
				return p.unexpected("a name")
			}
		}
		q.columns = append(q.columns, c)
		if !p.sign(",") {
			return nil
		}
	}
}

// functions are the words that compute a value of several rows.
var functions = []string{"count", "sum", "min", "max", "avg"}

// after are the words that can follow a field.
var after = []string{"as", "by", "group", "from", "where", "order", "limit"}

// column reads a path or a function. Whether a lone count is a function or a field is
// decided when all fields are known.
func (p *parser) column() (c column, err error) {
	start := p.skipSpace()
	word := strings.ToLower(p.match(bareName))
	if !slices.Contains(functions, word) || p.peekSign(".") || p.peekSign("[") {
		p.at = start
		c.path, err = p.path()
		return c, err
	}
	c.function = word
	if p.sign("(") { // as in SQL
		return p.call(c)
	}
	isName := p.atEnd() || p.peekSign(",") || p.peekSign(")") || p.peekKeyword(after...)
	switch {
	case word == "count":
		c.path, c.isBare = Path{{name: p.text[start : start+len(word)]}}, true
	case isName:
		c.function, c.path = "", Path{{name: p.text[start : start+len(word)]}}
	default:
		c.path, err = p.path()
	}
	return c, err
}

// call reads what a function has in parentheses.
func (p *parser) call(c column) (column, error) {
	if isAll := p.sign("*"); isAll && c.function != "count" {
		p.at--
		return c, p.unexpected("a field")
	} else if !isAll && (c.function != "count" || !p.peekSign(")")) {
		var err error
		if c.path, err = p.path(); err != nil {
			return c, err
		}
	}
	if !p.sign(")") {
		return c, p.unexpected(`")"`)
	}
	return c, nil
}

// groups reads the paths after "by".
func (p *parser) groups(q *Query) error {
	for {
		path, err := p.path()
		if err != nil {
			return err
		}
		if len(q.by) == maxGroupPaths {
			return p.unexpected(fmt.Sprintf("at most %d fields after by", maxGroupPaths))
		}
		q.by = append(q.by, path)
		if !p.sign(",") {
			return nil
		}
	}
}

// maxGroupPaths bounds the paths after "by".
const maxGroupPaths = 10

// captures reads /RE2/ as NAME, NAME.
func (p *parser) captures(q *Query) error {
	start := p.at
	q.from = captured.FindStringSubmatch(p.text[p.at:])[1]
	if q.from == "" {
		return p.problem("the pattern is empty")
	}
	pattern, err := regexp.Compile(q.from)
	if err != nil {
		return p.problem(fmt.Sprintf("not an RE2 pattern: %v", err))
	}
	p.at += len(q.from) + len("//")
	p.keyword("as")
	for {
		p.skipSpace()
		name, ok := p.quoted()
		if !ok {
			name = p.match(bareName)
		}
		if name == "" || !ok && strings.Contains(name, "/") || slices.Contains(q.names, name) {
			return p.unexpected("a new name")
		}
		if q.names = append(q.names, name); !p.sign(",") {
			break
		}
	}
	if groups := max(1, pattern.NumSubexp()); groups != len(q.names) || groups > maxFields {
		p.at = start
		return p.problem(fmt.Sprintf("expected a name for each group of the pattern: it has %d groups, and there are %d names", pattern.NumSubexp(), len(q.names)))
	}
	if len(q.columns) == 0 && !q.isAll {
		q.isAll = true
	}
	return nil
}

// order reads "order by" and its paths.
func (p *parser) order(q *Query) error {
	if !p.keyword("order") {
		return nil
	}
	if !p.keyword("by") {
		return p.unexpected(`"by"`)
	}
	for {
		start := p.skipSpace()
		c, err := p.column()
		if err != nil {
			return err
		}
		if len(q.order) == maxSortKeys {
			return p.unexpected(fmt.Sprintf("at most %d fields after order by", maxSortKeys))
		}
		key, ok := q.sortKey(c)
		if !ok {
			p.at = start
			return p.unexpected("one of the columns " + list(q.columnNames()))
		}
		if key.isDescending = p.keyword("desc"); !key.isDescending {
			p.keyword("asc")
		}
		if q.order = append(q.order, key); !p.sign(",") {
			return nil
		}
	}
}

// maxSortKeys bounds the paths after "order by".
const maxSortKeys = 5

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
