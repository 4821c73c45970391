package selection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"mcpx/internal/rawjson"
)

// anyOf reads conditions with "or" between them.
func (p *parser) anyOf() (test, error) {
	var any anyOf
	for {
		t, err := p.allOf()
		if err != nil {
			return nil, err
		}
		if any = append(any, t); !p.keyword("or") {
			break
		}
	}
	if len(any) == 1 {
		return any[0], nil
	}
	return any, nil
}

// allOf reads conditions with "and" between them.
func (p *parser) allOf() (test, error) {
	var all allOf
	for {
		t, err := p.condition()
		if err != nil {
			return nil, err
		}
		if inner, ok := t.(allOf); ok { // it was in parentheses
			all = append(all, inner...)
		} else {
			all = append(all, t)
		}
		if !p.keyword("and") {
			break
		}
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

// condition reads a comparison, "not" and a condition, or conditions in parentheses.
func (p *parser) condition() (test, error) {
	start := p.skipSpace()
	switch {
	case p.atEnd():
		return nil, p.unexpected("a field to compare")
	case p.keyword("not"):
		if p.skipSpace(); operator.MatchString(p.text[p.at:]) || p.peekSign(".") || p.peekSign("[") {
			p.at = start // a field of that name
			break
		}
		t, err := p.condition()
		return negation{t}, err
	case p.sign("("):
		p.depth++
		t, err := p.anyOf()
		if err != nil {
			return nil, err
		}
		if p.depth--; !p.sign(")") {
			return nil, p.unexpected(`"and", "or" or ")"`)
		}
		return t, nil
	}
	return p.comparison()
}

func (p *parser) comparison() (test, error) {
	if p.conditions++; p.conditions > maxConditions {
		return nil, p.unexpected(fmt.Sprintf("at most %d conditions", maxConditions))
	}
	var c comparison
	var err error
	if c.path, err = p.path(); err != nil {
		return nil, err
	}
	isNot := p.keyword("not")
	if p.keyword("in") {
		c.operator = "in"
		if err = p.set(&c); isNot {
			return negation{c}, err
		}
		return c, err
	}
	p.skipSpace()
	c.operator = aliases.Replace(p.match(operator))
	if isNot || c.operator == "" {
		return nil, p.unexpected("one of = != < <= > >= ~ in")
	}
	v, err := p.value(fmt.Sprintf("%q", c.operator), false)
	c.values = []value{v}
	return c, err
}

// aliases are operators of other languages.
var aliases = strings.NewReplacer("==", "=", "<>", "!=")

// value reads a value after some sign: quoted, or a word.
func (p *parser) value(sign string, isList bool) (v value, err error) {
	start := p.skipSpace()
	text, isQuoted := p.quoted()
	if isQuoted {
		return value{text, text == "null" || rawjson.IsNumber([]byte(text))}, nil
	}
	if text = p.word(isList); text == "" {
		return v, p.unexpected("a value after " + sign)
	}
	if strings.ContainsAny(text[:1], `"'`) {
		p.at = start
		return v, p.unexpected("a closing quotation mark")
	}
	return value{text: text}, nil
}

// set reads the values after "in": (a, b), or a reference.
func (p *parser) set(c *comparison) error {
	if p.skipSpace(); p.peekSign("{") {
		return p.reference(c)
	}
	if !p.sign("(") {
		return p.unexpected(`(a, b) or {"$r": "r7", "select": "id"} after "in"`)
	}
	for {
		v, err := p.value(`"in ("`, true)
		if err != nil {
			return err
		}
		if c.values = append(c.values, v); !p.sign(",") {
			break
		}
	}
	if !p.sign(")") {
		return p.unexpected(`"," or ")"`)
	}
	c.set = newSet(c.values)
	return nil
}

// SetReference is a reference to the values of a condition: {"$r": "r7", "select": "id"}.
type SetReference struct {
	Text   string // an id and a JSON Pointer, like r7/items/*/id
	Select *Query // selects from that part; may be nil
}

// reference reads a reference, which is JSON.
func (p *parser) reference(c *comparison) error {
	if p.isInner {
		return p.problem("a select in a reference cannot have references")
	}
	start := p.at
	d := json.NewDecoder(strings.NewReader(p.text[p.at:]))
	var object json.RawMessage
	if err := d.Decode(&object); err != nil {
		return p.unexpected("a reference in JSON")
	}
	c.reference = &SetReference{}
	for key, raw := range rawjson.Members(bytes.TrimSpace(object)) {
		text, ok := rawjson.String(raw)
		switch {
		case ok && key == "$r":
			c.reference.Text = text
		case ok && key == "select":
			q, err := parse(parser{text: text, isInner: true})
			if err != nil {
				return err
			}
			if q.Pattern != "" {
				return p.problem("a reference cannot have a pattern; select fields")
			}
			c.reference.Select = q
		default:
			return p.unexpected(`a reference with the members "$r" and "select", both strings`)
		}
	}
	if c.reference.Text == "" {
		return p.unexpected(`a reference with "$r"`)
	}
	p.at = start + int(d.InputOffset())
	return nil
}
