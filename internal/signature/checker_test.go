package signature_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// accepts reports whether a value fits. A signature is parsed into such functions.
type accepts func(value any) bool

// check parses a signature and reports whether arguments fit it.
func check(signature string, arguments any) (ok bool, err error) {
	p := &parser{text: signature}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v at %q", r, p.text[p.pos:])
		}
	}()
	root := p.line()
	return root(arguments), nil
}

type parser struct {
	text string
	pos  int
}

// line = [ parameters | type ]
func (p *parser) line() accepts {
	var root accepts
	if p.pos == len(p.text) {
		return anything
	}
	if root = p.try(func() accepts { return p.properties("") }); root == nil {
		root = p.union()
	}
	if p.pos < len(p.text) {
		panic("left over")
	}
	return root
}

// try goes back if f fails, or stops before the end of the parameters.
func (p *parser) try(f func() accepts) (result accepts) {
	start := p.pos
	defer func() {
		if recover() != nil {
			p.pos, result = start, nil
		}
	}()
	result = f()
	if p.pos < len(p.text) {
		panic("not the end")
	}
	return result
}

type property struct {
	required bool
	is       accepts
}

// properties = property { ", " property }; property = ( name [ "?" ] | "[key: string]" ) ": " type [ " = " value ] | "…"
func (p *parser) properties(end string) accepts {
	named := map[string]property{}
	rest := accepts(anything)
	for first := true; end == "" || !p.eat(end); first = false {
		if !first && !p.eat(", ") {
			break
		}
		if p.eat("…") {
			rest = anything
			continue
		}
		if p.eat("[key: string]: ") {
			rest = p.union()
			continue
		}
		name := p.key()
		required := !p.eat("?")
		p.must(": ")
		named[name] = property{required, p.union()}
		if p.eat(" = ") {
			p.value()
		}
	}
	return func(value any) bool {
		object, ok := value.(map[string]any)
		return ok && hasProperties(object, named, rest)
	}
}

func hasProperties(object map[string]any, named map[string]property, rest accepts) bool {
	for name, p := range named {
		if _, there := object[name]; p.required && !there {
			return false
		}
	}
	for name, v := range object {
		is := rest
		if p, known := named[name]; known {
			is = p.is
		}
		if !is(v) {
			return false
		}
	}
	return true
}

func (p *parser) union() accepts {
	all := []accepts{p.element()}
	for p.eat(" | ") {
		all = append(all, p.element())
	}
	return func(value any) bool {
		for _, is := range all {
			if is(value) {
				return true
			}
		}
		return false
	}
}

// element = primary [ note ] { "[]" [ note ] }
func (p *parser) element() accepts {
	is := p.note(p.primary())
	for p.eat("[]") {
		inner := is
		is = p.note(func(value any) bool { return isList(value, inner) })
	}
	return is
}

var words = map[string]accepts{
	"unknown": anything,
	"…":       anything,
	"never":   func(any) bool { return false },
	"null":    func(v any) bool { return v == nil },
	"string":  func(v any) bool { _, ok := v.(string); return ok },
	"boolean": func(v any) bool { _, ok := v.(bool); return ok },
	"object":  func(v any) bool { _, ok := v.(map[string]any); return ok },
	"number":  func(v any) bool { _, ok := v.(json.Number); return ok },
	"integer": func(v any) bool { n, ok := v.(json.Number); return ok && rational(n).IsInt() },
}

func anything(any) bool { return true }

func (p *parser) primary() accepts {
	switch {
	case p.eat("("):
		is := p.union()
		p.must(")")
		return is
	case p.eat("{"):
		if p.eat("…}") {
			return words["object"]
		}
		return p.properties("}")
	case p.eat("Record<string, "):
		is := p.union()
		p.must(">")
		return func(value any) bool {
			object, ok := value.(map[string]any)
			return ok && hasProperties(object, nil, is)
		}
	case p.eat("…"):
		return anything
	case strings.ContainsRune(`"-0123456789`, rune(p.text[p.pos])), p.at("true"), p.at("false"):
		want := p.value()
		return func(value any) bool { return equal(value, want) }
	}
	name := p.name()
	is, ok := words[name]
	if !ok {
		panic("undefined " + name)
	}
	return is
}

func isList(value any, is accepts) bool {
	list, ok := value.([]any)
	for _, v := range list {
		if !is(v) {
			return false
		}
	}
	return ok
}

// note = " /*" { bound | pattern | format } "*/"; only bounds are checked.
func (p *parser) note(is accepts) accepts {
	if !p.eat(" /*") {
		return is
	}
	text, _, closed := strings.Cut(p.text[p.pos:], "*/")
	for p.pos += len(text) + len("*/"); p.eat("/"); { // a pattern may end in an asterisk
		text += "*"
	}
	if !closed {
		panic("open comment")
	}
	return func(value any) bool {
		for bound := range strings.SplitSeq(text, ", ") {
			if is(value) && !inBound(value, bound) {
				return false
			}
		}
		return is(value)
	}
}

func (p *parser) at(s string) bool { return strings.HasPrefix(p.text[p.pos:], s) }

func (p *parser) eat(s string) bool {
	if !p.at(s) {
		return false
	}
	p.pos += len(s)
	return true
}

func (p *parser) must(s string) {
	if !p.eat(s) {
		panic("no " + s)
	}
}

func (p *parser) name() string {
	start := p.pos
	for p.pos < len(p.text) && !strings.ContainsRune(" ,;:?&|()[]{}<>=/\"", rune(p.text[p.pos])) {
		p.pos++
	}
	if p.pos == start {
		panic("no name")
	}
	return p.text[start:p.pos]
}

func (p *parser) key() string {
	if p.at(`"`) {
		return p.value().(string)
	}
	return p.name()
}

// value reads one JSON value.
func (p *parser) value() any {
	d := json.NewDecoder(strings.NewReader(p.text[p.pos:]))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err)
	}
	p.pos += int(d.InputOffset())
	return v
}

func TestChecker(t *testing.T) {
	for _, c := range []struct {
		signature, arguments string
		want                 bool
	}{
		{``, `{"a":1}`, true},
		{`a: string`, `{}`, false},
		{`a?: string, …`, `{"b":1}`, true},
		{`a: string`, `{"a":1}`, false},
		{`a: integer /*1..3*/ = 2`, `{"a":3.0}`, true},
		{`a: integer /*1..3*/`, `{"a":4}`, false},
		{`a: integer`, `{"a":1.5}`, false},
		{`a: (1 | "x")[], "b-c": true`, `{"a":[1.0,"x"],"b-c":true}`, true},
		{`a: (1 | "x")[]`, `{"a":[2]}`, false},
		{`a: string /*^a**/[] /*<=1 items*/`, `{"a":["a","b"]}`, false},
		{`a: {b: {c?: null}}`, `{"a":{"b":{"c":1}}}`, false},
		{`[key: string]: boolean`, `{"a":1}`, false},
		{`a: Record<string, boolean>`, `{"a":{"x":1}}`, false},
		{`{a: string} | {b: number}`, `{"b":1}`, true},
		{`{a: string} | {b: number}`, `{"c":1}`, false},
		{`a: {…}[]`, `{"a":[{"b":1}]}`, true},
		{`a: {…}[]`, `{"a":["b"]}`, false},
	} {
		ok, err := check(c.signature, decode(t, c.arguments))
		if err != nil || ok != c.want {
			t.Errorf("check(%s, %s) = %v, %v", c.signature, c.arguments, ok, err)
		}
	}
}
