package selection

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
)

// leastTable is the number of rows from which a table is shorter than JSON.
const leastTable = 3

// Text returns the selection for a model: a table if there are several rows of scalars,
// otherwise minified JSON. It has at most budget tokens; 0 is no limit. The last line
// says how many rows there are, unless all are shown.
func (s *Selection) Text(budget int) string {
	if s.query.isCount {
		return strconv.Itoa(s.matched)
	}
	if len(s.query.fields) == 0 && !s.query.isAll {
		return ""
	}
	body, shown := s.body(budget)
	if shown == len(s.all) || s.isOne && shown == 1 {
		return body
	}
	return body + fmt.Sprintf("\n%d of %d rows%s", shown, len(s.all), s.why(shown))
}

// why explains why not all rows are shown.
func (s *Selection) why(shown int) string {
	switch {
	case shown < len(s.rows):
		return fmt.Sprintf("; %d match, and more do not fit: use where, limit or fewer fields", s.matched)
	case s.matched < len(s.all) && shown < s.matched:
		return fmt.Sprintf("; %d match", s.matched)
	case s.matched < len(s.all):
		return " match"
	}
	return ""
}

// noteCost is more than the last line costs.
const noteCost = 40

// body returns as many rows as the budget allows.
func (s *Selection) body(budget int) (text string, shown int) {
	head, separator, foot := "[", ",", "]"
	columns := s.columns()
	if columns != nil {
		head, separator, foot = header(len(s.rows), columns), "\n", ""
	} else if s.isOne && len(s.rows) == 1 {
		head, foot = "", ""
	}
	rows := make([]string, len(s.rows))
	for i, row := range s.rows {
		if columns != nil {
			rows[i] = tableRow(row, columns)
		} else {
			rows[i] = string(s.object(row))
		}
	}
	text = head + strings.Join(rows, separator) + foot
	if budget <= 0 || !tokens.Exceeds(text, budget) {
		return text, len(rows)
	}
	end := tokens.Cut(text, budget-noteCost)
	at := len(head)
	for shown < len(rows) && at+len(rows[shown]) <= end {
		at += len(rows[shown]) + len(separator)
		shown++
	}
	if shown == 0 {
		return text[:end] + "…", 0
	}
	if columns != nil {
		head = header(shown, columns)
	}
	return head + strings.Join(rows[:shown], separator) + foot, shown
}

// columns returns the columns of a table, nil if the selection does not make one.
func (s *Selection) columns() []Path {
	if len(s.rows) < leastTable || s.isOne {
		return nil
	}
	columns := s.query.fields
	if s.query.isAll {
		names := fieldsOf(s.rows, maxColumns+1)
		if len(names) > maxColumns {
			return nil
		}
		for _, name := range names {
			columns = append(columns, Path{{name: name}})
		}
	}
	for _, row := range s.rows {
		if s.query.isAll && row.Kind() != '{' {
			return nil
		}
		for _, c := range columns {
			found, several, _ := c.find(row)
			if several || len(found) == 1 && strings.IndexByte("{[", found[0].Kind()) >= 0 {
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

// tableRow returns a row as CSV (RFC 4180).
func tableRow(row rawjson.Node, columns []Path) string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		if found, _, _ := c.find(row); len(found) == 1 {
			cells[i] = scalarCell(found[0])
		}
	}
	return strings.Join(cells, ",")
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

// object returns the selected fields of a row as an object.
func (s *Selection) object(row rawjson.Node) []byte {
	if s.query.isAll {
		return rawjson.Compact(row.Raw())
	}
	b := []byte("{")
	for _, f := range s.query.fields {
		b = rawjson.AppendMember(b, f.String(), f.value(row))
	}
	return append(b, '}')
}

// value returns the value at a path: one value, an array if the path has [], or null.
func (p Path) value(row rawjson.Node) []byte {
	found, several, isKnown := p.find(row)
	switch {
	case len(found) == 0 && (!several || !isKnown):
		return []byte("null")
	case !several:
		return rawjson.Compact(found[0].Raw())
	}
	b := []byte("[")
	for _, n := range found {
		b = rawjson.AppendElement(b, rawjson.Compact(n.Raw()))
	}
	return append(b, ']')
}

// JSON returns the selection as a JSON value: the number of rows, or an array with the
// value of each row if there is one field, or else with an object for each row.
func (s *Selection) JSON() []byte {
	if s.query.isCount {
		return strconv.AppendInt(nil, int64(s.matched), 10)
	}
	b := []byte("[")
	for _, row := range s.rows {
		if len(s.query.fields) == 1 {
			b = rawjson.AppendElement(b, s.query.fields[0].value(row))
		} else {
			b = rawjson.AppendElement(b, s.object(row))
		}
	}
	return append(b, ']')
}
