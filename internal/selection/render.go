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
// otherwise minified JSON. If that has more than limit tokens, it is cut to head tokens; a
// limit of 0 is none. The last line says how many rows there are, unless all are shown.
func (s *Selection) Text(limit, head int) (string, error) {
	if len(s.query.columns) == 0 && !s.query.isAll {
		return "", s.Err()
	}
	if s.isScalar() {
		text, err := s.JSON(maxText)
		return s.withReason(string(text), limit), err
	}
	b := s.body(limit)
	if b.isCut && head < limit {
		b = s.body(head)
	}
	return s.withReason(withLine(b.text, s.position(b)), limit), s.Err()
}

// withReason adds why no row matches.
func (s *Selection) withReason(text string, limit int) string {
	rows := s
	if s.rows != nil {
		rows = s.rows
	}
	if rows.matched > 0 || rows.none == "" {
		return text
	}
	reason := rows.none
	if limit > 0 {
		reason = tokens.Shorten(reason, limit/2)
	}
	if s.rows == nil {
		return text + "; " + reason
	}
	return fmt.Sprintf("%s\n0 of %d rows match; %s", text, rows.total, reason)
}

func withLine(text, line string) string {
	if line == "" {
		return text
	}
	return text + "\n" + line
}

// isScalar reports whether the selection is one value: a function of all rows.
func (s *Selection) isScalar() bool {
	return s.rows != nil && len(s.rows.query.by) == 0 && len(s.query.columns) == 1 && s.count() == 1
}

// position returns the line that says how many rows are shown.
func (s *Selection) position(b body) string {
	isAll := b.shown == s.total || s.isOne && b.shown == 1
	switch {
	case isAll:
		return ""
	case b.isCut && s.isOne:
		return fmt.Sprintf("cut: %s tokens in all; name fields, or use read_result with path", b.size(s.count()))
	case b.isCut && s.rows != nil:
		return fmt.Sprintf("%d of %d groups; cut: %s tokens in all, use where or limit", b.shown, s.total, b.size(s.count()))
	case b.isCut && s.matched == s.total:
		return fmt.Sprintf("%d of %d rows; cut: %s tokens in all, use where, limit or fewer fields", b.shown, s.total, b.size(s.count()))
	case b.isCut:
		return fmt.Sprintf("%d of %d rows; %d match; cut: %s tokens in all, use where, limit or fewer fields", b.shown, s.total, s.matched, b.size(s.count()))
	case s.matched < s.total && b.shown < s.matched:
		return fmt.Sprintf("%d of %d rows; %d match", b.shown, s.total, s.matched)
	case s.matched < s.total:
		return fmt.Sprintf("%d of %d rows match", b.shown, s.total)
	}
	return fmt.Sprintf("%d of %d %ss", b.shown, s.total, s.unit)
}

// noteCost is more than the last line costs.
const noteCost = 40

// body is the text of some rows.
type body struct {
	text   string
	shown  int  // rows
	isCut  bool // more rows are selected
	tokens int  // of all rows, if no whole row is shown
}

// size returns about how many tokens a number of rows has.
func (b body) size(rows int) string {
	if b.shown == 0 {
		return plain.Number(b.tokens)
	}
	return "~" + plain.Number(tokens.Count(b.text)*rows/b.shown)
}

// body returns as many rows as the budget allows.
func (s *Selection) body(budget int) body {
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
	text := string(t.text) + foot
	if isWhole && (budget <= 0 || !tokens.Exceeds(text, budget)) {
		return body{text: text, shown: len(t.ends)}
	}
	end := min(len(t.text), t.limit)
	if budget > 0 {
		end = min(end, tokens.Cut(text, budget-noteCost))
	}
	shown := 0
	for shown < len(t.ends) && t.ends[shown] <= end {
		shown++
	}
	if shown == 0 {
		return body{text: text[:plain.RuneStart(text, end)] + "…", isCut: true, tokens: tokens.Count(text)}
	}
	rows := text[len(head):t.ends[shown-1]]
	if t.columns != nil {
		head = header(shown, t.columns)
	}
	return body{text: head + rows + foot, shown: shown, isCut: true}
}

// longestToken is the most bytes that a token has.
const longestToken = 128

// table is the text of a selection that is being written.
type table struct {
	*Selection
	columns []column // nil: the rows are JSON
	budget  int      // tokens; 0: no limit
	limit   int      // bytes
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
		if found, _ := c.path.only(row); !found.IsZero() && len(t.text) <= t.limit {
			t.text = append(t.text, t.cell(found)...)
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
func (s *Selection) columns() []column {
	if s.count() < leastTable || s.isOne {
		return nil
	}
	columns := s.query.columns
	if s.query.from != "" && s.rows == nil {
		return columns // captures are texts
	}
	if s.query.isAll {
		names := fieldsOf(s.selected(), maxColumns+1)
		if len(names) > maxColumns {
			return nil
		}
		for _, name := range names {
			columns = append(columns, column{path: Path{{name: name}}})
		}
	}
	for row := range s.selected() {
		if s.query.isAll && row.Kind() != '{' {
			return nil
		}
		for _, c := range columns {
			found, several := c.path.only(row)
			if several || found.Kind() == '{' || found.Kind() == '[' {
				return nil
			}
		}
	}
	return columns
}

// maxColumns bounds the columns of a table with all fields.
const maxColumns = 200

func header(rows int, columns []column) string {
	var names []string
	for _, c := range columns {
		names = append(names, cell(c.name()))
	}
	return fmt.Sprintf("[%d]{%s}:\n", rows, strings.Join(names, ","))
}

// cell returns the cell of a value. Captures are all texts. Other texts are quoted if they look
// like another type.
func (s *Selection) cell(n rawjson.Node) string {
	if text, ok := n.String(); ok && (s.query.from != "" || s.rows != nil && s.rows.query.from != "") {
		return cell(text)
	}
	return scalarCell(n)
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
	for i, c := range s.query.columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(rawjson.AppendString(b, c.name()), ':')
		if b = s.appendValue(b, row, c.path, limit); len(b) > limit {
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

// JSON returns the selection as a JSON value: the value of a function of all rows, or an array
// with the value of each row if there is one field, or else with an object for each row. It
// fails with ErrLong if that has more than limit bytes.
func (s *Selection) JSON(limit int) ([]byte, error) {
	b := []byte("[")
	for row := range s.selected() {
		if len(b) > 1 {
			b = append(b, ',')
		}
		if len(s.query.columns) == 1 {
			b = s.appendValue(b, row, s.query.columns[0].path, limit)
		} else {
			b = s.appendObject(b, row, limit)
		}
		if len(b) > limit {
			return nil, ErrLong
		}
	}
	if s.isScalar() {
		return b[1:], s.Err()
	}
	return append(b, ']'), s.Err()
}
