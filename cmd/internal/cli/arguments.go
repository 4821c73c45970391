package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpx/config"
	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

// arguments are the arguments of a call as written on the command line: one JSON
// object, or pairs whose types come from the tool's schema.
type arguments struct {
	raw   []byte
	pairs []pair
}

// readArguments reads the arguments and finds mistakes in them before a server is
// started.
func readArguments(t *invocation, list []string) (arguments, error) {
	if len(list) != 1 {
		return parsePairs(list)
	}
	only := list[0]
	switch {
	case only == "-":
		raw, err := t.Read()
		if err != nil || len(bytes.TrimSpace(raw)) == 0 {
			return arguments{}, err
		}
		return wholeArguments("stdin", raw)
	case strings.HasPrefix(only, "@"):
		raw, err := config.ReadFile(only[1:], maxArguments)
		if err != nil {
			return arguments{}, usageError{err}
		}
		return wholeArguments(only[1:], raw)
	case strings.HasPrefix(strings.TrimSpace(only), "{"):
		return wholeArguments("arguments", []byte(only))
	}
	return parsePairs(list)
}

// maxArguments bounds a file of arguments. No server takes a longer message.
const maxArguments = 64 << 20

func wholeArguments(from string, raw []byte) (arguments, error) {
	if err := checkJSON(from, raw); err != nil {
		return arguments{}, err
	}
	if rawjson.Kind(raw) != '{' {
		return arguments{}, usageError{fmt.Errorf("%s: not a JSON object; arguments are {\"key\": value}", from)}
	}
	return arguments{raw: raw}, nil
}

// texts returns the arguments of a prompt, which are strings.
func (a arguments) texts() (map[string]string, error) {
	pairs := a.pairs
	for key, value := range rawjson.Members(a.raw) {
		if rawjson.Kind(value) != '"' {
			return nil, usageError{fmt.Errorf("the value of %q must be a string: a prompt takes nothing else", key)}
		}
		pairs = append(pairs, pair{key: key, json: value})
	}
	texts := map[string]string{}
	for _, p := range pairs {
		if _, isGiven := texts[p.key]; isGiven {
			return nil, usageError{fmt.Errorf("%q is given twice", p.key)}
		}
		if texts[p.key] = p.text; p.json != nil {
			texts[p.key] = bare(p.json)
		}
	}
	return texts, nil
}

// checkJSON returns an error with FILE:LINE:COLUMN if a text is not JSON.
func checkJSON(from string, raw []byte) error {
	raw = bytes.TrimRight(raw, " \t\r\n")
	wrong := rawjson.Check(raw)
	if wrong == nil {
		return nil
	}
	at := len(raw)
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(raw, new(json.RawMessage))); ok {
		wrong = syntax
		if !strings.HasPrefix(syntax.Error(), "unexpected end") {
			at = int(syntax.Offset) - 1
		}
	}
	line := bytes.LastIndexByte(raw[:at], '\n') + 1
	return usageError{fmt.Errorf("%s:%d:%d: not JSON: %w", from, 1+bytes.Count(raw[:at], []byte("\n")), 1+utf8.RuneCount(raw[line:at]), wrong)}
}

// pair is key=value, or key:=json.
type pair struct {
	key  string
	text string
	json []byte // nil: text is the value
}

// parsePairs reads key=value, key:=json and key:=@FILE.
func parsePairs(list []string) (arguments, error) {
	var a arguments
	for _, text := range list {
		key, value, ok := strings.Cut(text, "=")
		if !ok || strings.TrimSuffix(key, ":") == "" {
			return a, usageError{fmt.Errorf("%q is neither key=value nor key:=json; the arguments can also be one JSON object, @FILE, or - for stdin", text)}
		}
		p := pair{key: key, text: value}
		if name, isJSON := strings.CutSuffix(key, ":"); isJSON {
			p.key, p.json = name, []byte(value)
			if file, ok := strings.CutPrefix(value, "@"); ok {
				content, err := config.ReadFile(file, maxArguments)
				if err != nil {
					return a, usageError{err}
				}
				if err := checkJSON(file, content); err != nil {
					return a, err
				}
				p.json = bytes.TrimSpace(content)
			}
			if rawjson.Check(p.json) != nil {
				return a, usageError{fmt.Errorf("the value of %q is not JSON; write %s=VALUE for text", text, name)}
			}
		}
		a.pairs = append(a.pairs, p)
	}
	return a, nil
}

// fit returns the arguments with the types of the tool's input schema. A value that does
// not fit stays text, and validation explains what is wrong with it.
func (a arguments) fit(input *schema.Schema) ([]byte, error) {
	if a.pairs == nil {
		return a.raw, nil
	}
	return object(newParameter(input), a.pairs)
}

// object returns the pairs as an object. A key given several times becomes an array, and
// keys with dots become nested objects.
func object(of parameter, pairs []pair) ([]byte, error) {
	var order []string
	direct, within := map[string][]pair{}, map[string][]pair{}
	for _, p := range pairs {
		head, rest, nested := strings.Cut(p.key, ".")
		if nested = nested && rest != "" && !of.has(p.key) && of.member(head).is("object"); !nested {
			head = p.key
		}
		if direct[head] == nil && within[head] == nil {
			order = append(order, head)
		}
		if nested {
			p.key = rest
			within[head] = append(within[head], p)
		} else {
			direct[head] = append(direct[head], p)
		}
	}
	b := []byte("{")
	for _, key := range order {
		var value []byte
		var err error
		switch {
		case direct[key] != nil && within[key] != nil:
			err = usageError{fmt.Errorf("%q is given both whole and in parts", key)}
		case within[key] != nil:
			value, err = object(of.member(key), within[key])
		default:
			value, err = of.member(key).value(key, direct[key])
		}
		if err != nil {
			return nil, err
		}
		b = rawjson.AppendMember(b, key, value)
	}
	return append(b, '}'), nil
}

// value returns the value of a key that is given once or several times.
func (p parameter) value(key string, given []pair) ([]byte, error) {
	isArray := p.is("array") && !p.is("string")
	if len(given) == 1 {
		switch {
		case given[0].json != nil:
			return given[0].json, nil
		case isArray && given[0].text == "":
			return []byte("[]"), nil
		case isArray && given[0].text == "null" && p.is("null"):
			return []byte("null"), nil
		case !isArray || rawjson.Kind([]byte(given[0].text)) == '[' && rawjson.Check([]byte(given[0].text)) == nil:
			return p.scalar(given[0].text), nil
		}
	}
	if !p.unknown() && !p.is("array") {
		return nil, usageError{fmt.Errorf("%q is given %d times, but takes one value", key, len(given))}
	}
	return jsonArray(given, func(g pair) []byte {
		if g.json != nil {
			return g.json
		}
		return p.items().scalar(g.text)
	}), nil
}

// parameter is a part of a tool's input schema: it describes one value.
type parameter struct {
	document *schema.Schema // the whole schema, for references
	node     rawjson.Node   // zero: nothing is known
}

func newParameter(s *schema.Schema) parameter {
	root, _ := s.Root()
	return parameter{s, root}
}

// schemas returns all schemas of the value: the schema itself, the targets of its
// references, and its alternatives.
func (p parameter) schemas() []rawjson.Node { return p.document.Alternatives(p.node) }

// has reports whether the value is an object with that member declared.
func (p parameter) has(key string) bool {
	return slices.ContainsFunc(p.schemas(), func(s rawjson.Node) bool { return !s.Get("properties").Get(key).IsZero() })
}

// member returns the parameter for a member of the value.
func (p parameter) member(key string) parameter {
	for _, s := range p.schemas() {
		if declared := s.Get("properties").Get(key); !declared.IsZero() {
			return parameter{p.document, declared}
		}
	}
	return p.within("additionalProperties")
}

// items returns the parameter for the elements of the value.
func (p parameter) items() parameter { return p.within("items") }

func (p parameter) within(keyword string) parameter {
	for _, s := range p.schemas() {
		if inner := s.Get(keyword); inner.Kind() == '{' {
			return parameter{p.document, inner}
		}
	}
	return parameter{document: p.document}
}

// types returns the types that the value may have, as far as the schema says so.
func (p parameter) types() (types []string) {
	for _, s := range p.schemas() {
		types = append(types, schema.Types(s.Get("type"))...)
		for _, value := range append(s.Get("enum").Elements(), s.Get("const")) {
			if !value.IsZero() {
				types = append(types, typeOf(value.Raw()))
			}
		}
		if !s.Get("properties").IsZero() {
			types = append(types, "object")
		}
	}
	return types
}

// unknown reports whether the value may be anything.
func (p parameter) unknown() bool { return len(p.types()) == 0 }

// is reports whether the value may be of that type.
func (p parameter) is(name string) bool { return slices.Contains(p.types(), name) }

// scalar converts a text to a JSON value: to a string if the schema allows one,
// else to the JSON that the text spells if the schema allows that, else to a
// string.
func (p parameter) scalar(text string) []byte {
	raw := []byte(text)
	if !p.unknown() && !p.is("string") && rawjson.Check(raw) == nil {
		kind := typeOf(raw)
		if p.is(kind) || kind == "number" && p.is("integer") {
			return raw
		}
	}
	return rawjson.AppendString(nil, text)
}

// typeOf returns the JSON Schema type of a value. An integer is a number, too.
func typeOf(value []byte) string {
	switch rawjson.Kind(value) {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// jsonArray returns an array of the JSON that raw returns for each element of a list.
func jsonArray[T any](list []T, raw func(T) []byte) []byte {
	b := []byte("[")
	for i, element := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, raw(element)...)
	}
	return append(b, ']')
}
