package selection

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

// leastTable is the number of rows from which a table is shorter than JSON.
const leastTable = 3

// maxText bounds a selection without a budget, in bytes.
const maxText = 64 << 20

// Text returns the selection for a model: a table if there are several rows of scalars,
// otherwise minified JSON. It has at most budget tokens; 0 is no limit. The last line
// says how many rows there are, unless all are shown.
func (s *Selection) Text(budget int) (string, error) {
	if s.query.isCount {
		return strconv.Itoa(s.matched), nil
	}
	if len(s.query.fields) == 0 && !s.query.isAll {
		return "", nil
	}
	body, shown := s.body(budget)
	if shown != s.total && (!s.isOne || shown != 1) {
		body += fmt.Sprintf("\n%d of %d rows%s", shown, s.total, s.why(shown))
	}
	return body, s.Err()
}

// why explains why not all rows are shown.
func (s *Selection) why(shown int) string {
	switch {
	case shown < s.count():
		return fmt.Sprintf("; %d match, and more do not fit: use where, limit or fewer fields", s.matched)
	case s.matched < s.total && shown < s.matched:
		return fmt.Sprintf("; %d match", s.matched)
	case s.matched < s.total:
		return " match"
	}
	return ""
}

// noteCost is more than the last line costs.
const noteCost = 40

// body returns as many rows as the budget allows.
func (s *Selection) body(budget int) (text string, shown int) {
	t := table{Selection: s, columns: s.columns(), budget: budget, limit: maxText}
	if budget > 0 && budget < maxText/longestToken {
		t.limit = budget * longestToken
	}
	head, foot := "[", "]"
	switch {
	case t.columns != nil:
		head, foot = header(s.count(), t.columns), ""
	case s.isOne && s.count() == 1:
		head, foot = "", ""
	}
	t.text = []byte(head)
	isWhole := t.addRows()
	if text = string(t.text) + foot; isWhole && (budget <= 0 || !tokens.Exceeds(text, budget)) {
		return text, len(t.ends)
	}
	end := min(len(t.text), t.limit)
	if budget > 0 {
		end = min(end, tokens.Cut(text, budget-noteCost))
	}
	for shown < len(t.ends) && t.ends[shown] <= end {
		shown++
	}
	if shown == 0 {
		return text[:plain.RuneStart(text, end)] + "…", 0
	}
	rows := text[len(head):t.ends[shown-1]]
	if t.columns != nil {
		head = header(shown, t.columns)
	}
	return head + rows + foot, shown
}

// longestToken is the most bytes that a token has.
const longestToken = 128

// table is the text of a selection that is being written.
type table struct {
	*Selection
	columns []Path // nil: the rows are JSON
	budget  int    // tokens; 0: no limit
	limit   int    // bytes
	text    []byte
	ends    []int // of the rows
}

// addRows adds rows until they exceed the budget. isWhole reports whether it added all.
func (t *table) addRows() (isWhole bool) {
	check := t.limit
	if t.budget > 0 && t.budget < check/4 {
		check = 4 * t.budget
	}
	for row := range t.selected() {
		if t.columns != nil {
			t.addCells(row)
		} else {
			t.addObject(row)
		}
		t.ends = append(t.ends, len(t.text))
		switch {
		case len(t.text) > t.limit:
			return false
		case len(t.text) > check && t.budget > 0:
			if tokens.Exceeds(string(t.text), t.budget) {
				return false
			}
			check = 2 * len(t.text)
		}
	}
	return true
}

// addCells adds a row as CSV (RFC 4180).
func (t *table) addCells(row rawjson.Node) {
	if len(t.ends) > 0 {
		t.text = append(t.text, '\n')
	}
	for i, c := range t.columns {
		if i > 0 {
			t.text = append(t.text, ',')
		}
		if found, _ := c.only(row); !found.IsZero() && len(t.text) <= t.limit {
			t.text = append(t.text, scalarCell(found)...)
		}
	}
}

// addObject adds a row as JSON.
func (t *table) addObject(row rawjson.Node) {
	if len(t.ends) > 0 {
		t.text = append(t.text, ',')
	}
	t.text = t.appendObject(t.text, row, t.limit)
}

// columns returns the columns of a table, nil if the selection does not make one.
func (s *Selection) columns() []Path {
	if s.count() < leastTable || s.isOne {
		return nil
	}
	columns := s.query.fields
	if s.query.isAll {
		names := fieldsOf(s.selected(), maxColumns+1)
		if len(names) > maxColumns {
			return nil
		}
		for _, name := range names {
			columns = append(columns, Path{{name: name}})
		}
	}
	for row := range s.selected() {
		if s.query.isAll && row.Kind() != '{' {
			return nil
		}
		for _, c := range columns {
			found, several := c.only(row)
			if several || found.Kind() == '{' || found.Kind() == '[' {
				return nil
			}
		}
	}
	return columns
}

// maxColumns bounds the columns of a table with all fields.
const maxColumns = 200

func header(rows int, columns []Path) string {
	var names []string
	for _, c := range columns {
		names = append(names, cell(c.String()))
	}
	return fmt.Sprintf("[%d]{%s}:\n", rows, strings.Join(names, ","))
}

// scalarCell returns the cell of a value. Strings that look like another type are quoted.
func scalarCell(n rawjson.Node) string {
	text, isString := n.String()
	_, notNumber := strconv.ParseFloat(text, 64)
	switch {
	case !isString:
		return string(n.Raw())
	case text == "" || notNumber == nil || slices.Contains([]string{"true", "false", "null"}, text):
		return `"` + text + `"`
	}
	return cell(text)
}

// cell quotes a text for CSV if it needs that: so that it cannot be taken for several cells
// or lines.
func cell(text string) string {
	if strings.ContainsFunc(text, endsCell) || strings.TrimSpace(text) != text {
		return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
	}
	return text
}

// endsCell reports whether a character may end a cell or a line, or is a quotation mark.
func endsCell(r rune) bool {
	return r == ',' || r == '"' || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp)
}

// appendObject appends the selected fields of a row as an object. It stops when b has more
// than limit bytes.
func (s *Selection) appendObject(b []byte, row rawjson.Node, limit int) []byte {
	if s.query.isAll {
		return rawjson.AppendCompact(b, row.Raw(), limit)
	}
	b = append(b, '{')
	for i, f := range s.query.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(rawjson.AppendString(b, f.String()), ':')
		if b = s.appendValue(b, row, f, limit); len(b) > limit {
			return b
		}
	}
	return append(b, '}')
}

// appendValue appends the value at a path: one value, an array if the path has [], or null.
// It stops when b has more than limit bytes.
func (s *Selection) appendValue(b []byte, row rawjson.Node, p Path, limit int) []byte {
	rest, at := p.lead(row)
	switch {
	case len(rest) == 0:
		return rawjson.AppendCompact(b, at.Raw(), limit)
	case at.Kind() == '[':
		return s.appendElements(b, rest, at, limit)
	case at.Kind() == 'n' && slices.Contains(rest, every):
		return append(b, "[]"...)
	}
	return append(b, "null"...)
}

// appendElements is appendValue for an array that the path enters.
func (s *Selection) appendElements(b []byte, rest Path, array rawjson.Node, limit int) []byte {
	start := len(b)
	b = append(b, '[')
	f := finder{Watch: s.Watch, visit: func(n rawjson.Node) bool {
		if len(b) > start+1 {
			b = append(b, ',')
		}
		b = rawjson.AppendCompact(b, n.Raw(), limit)
		return len(b) <= limit
	}}
	if !f.elements(rest, array) {
		return append(b[:start], "null"...)
	}
	return append(b, ']')
}

// ErrLong means that a selection is longer than allowed.
var ErrLong = errors.New("the selection is too long")

// JSON returns the selection as a JSON value: the number of rows, or an array with the
// value of each row if there is one field, or else with an object for each row. It fails
// with ErrLong if that has more than limit bytes.
func (s *Selection) JSON(limit int) ([]byte, error) {
	if s.query.isCount {
		return strconv.AppendInt(nil, int64(s.matched), 10), nil
	}
	b := []byte("[")
	for row := range s.selected() {
		if len(b) > 1 {
			b = append(b, ',')
		}
		if len(s.query.fields) == 1 {
			b = s.appendValue(b, row, s.query.fields[0], limit)
		} else {
			b = s.appendObject(b, row, limit)
		}
		if len(b) > limit {
			return nil, ErrLong
		}
	}
	return append(b, ']'), s.Err()
}
