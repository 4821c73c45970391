package selection

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/rawjson"
)

// String returns the query in a form that Parse reads as the same query.
func (q *Query) String() string {
	if q.Pattern != "" {
		return "/" + q.Pattern + "/"
	}
	var b strings.Builder
	b.WriteString("*")
	if !q.isAll {
		b.Reset()
		for i, c := range q.columns {
			comma(&b, i)
			b.WriteString(c.source())
		}
	}
	for i, path := range q.by {
		b.WriteString([]string{" by ", ", "}[min(i, 1)] + path.source())
	}
	if q.from != "" {
		b.WriteString(" from /" + q.from + "/ as ")
		for i, name := range q.names {
			comma(&b, i)
			b.WriteString(quoteName(name))
		}
	}
	if q.where != nil {
		b.WriteString(" where " + q.where.source())
	}
	for i, key := range q.order {
		b.WriteString([]string{" order by ", ", "}[min(i, 1)] + q.keySource(key))
	}
	if q.limit >= 0 {
		b.WriteString(" limit " + strconv.Itoa(q.limit))
	}
	return b.String()
}

func comma(b *strings.Builder, i int) {
	if i > 0 {
		b.WriteString(", ")
	}
}

// source returns the column as it is written in a select.
func (c column) source() string {
	text := c.path.source()
	switch {
	case c.function == "count" && c.path != nil:
		text = "count(" + text + ")"
	case c.function != "":
		text = strings.TrimSpace(c.function + " " + text)
	}
	if c.as != "" {
		text += " as " + quoteName(c.as)
	}
	return text
}

// keySource returns a path or column to order by as it is written in a select.
func (q *Query) keySource(key sortKey) string {
	text := key.path.source()
	if key.path == nil {
		c := q.columns[key.column]
		c.as = ""
		text = c.source()
	}
	if key.isDescending {
		text += " desc"
	}
	return text
}

// source returns the path as it is written in a select.
func (p Path) source() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.isEvery:
			b.WriteString("[]")
			continue
		case i > 0:
			b.WriteByte('.')
		}
		b.WriteString(quoteName(s.name))
	}
	return b.String()
}

func (c comparison) source() string {
	text := c.path.source() + " " + c.operator + " "
	switch {
	case c.reference != nil:
		return text + c.reference.source()
	case c.operator != "in":
		return text + c.values[0].source()
	}
	var values []string
	for _, v := range c.values {
		values = append(values, v.source())
	}
	return text + "(" + strings.Join(values, ", ") + ")"
}

func (v value) source() string {
	if v.isText || !simple.MatchString(v.text) && !rawjson.IsNumber([]byte(v.text)) {
		return quote(v.text)
	}
	return v.text
}

func (r *SetReference) source() string {
	object := rawjson.AppendMember([]byte("{"), "$r", rawjson.AppendString(nil, r.Text))
	if r.Select != nil {
		object = rawjson.AppendMember(object, "select", rawjson.AppendString(nil, r.Select.String()))
	}
	return string(object) + "}"
}

func (a allOf) source() string {
	var parts []string
	for _, t := range a {
		text := t.source()
		if _, isAny := t.(anyOf); isAny {
			text = "(" + text + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " and ")
}

func (a anyOf) source() string {
	var parts []string
	for _, t := range a {
		parts = append(parts, t.source())
	}
	return strings.Join(parts, " or ")
}

func (n negation) source() string { return "not (" + n.test.source() + ")" }

// simple matches names and values that need no quotes.
var simple = regexp.MustCompile(`^[\pL\pN_$@:-]+$`)

// reserved are words that have a meaning of their own in some place.
var reserved = slices.Concat(functions, after, []string{"select", "and", "or", "not", "in", "desc", "asc"})

// quoteName returns a name as it is written in a select.
func quoteName(name string) string {
	if simple.MatchString(name) && !slices.Contains(reserved, strings.ToLower(name)) {
		return name
	}
	return quote(name)
}

// quote returns a text in quotes.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
