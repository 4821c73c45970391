package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/jsonc"
	"mcpx/internal/nearest"
	"mcpx/internal/reference"
)

// Field declares one key of an object: how it is read, described in the JSON Schema and
// shown.
type Field struct {
	Name string
	Kind Kind
	Doc  string
}

// Kind is the type of a key, bound to the variable that keeps its value. The variable's
// value at that time is the default.
type Kind struct {
	schema object                        // its JSON Schema
	read   func(r *reader, n jsonc.Node) // stores a valid value, or reports a problem
	show   func() any                    // returns the value for Show; an empty one leaves the key out
}

// also adds rules to the JSON Schema: checks that are easy to express there.
func (k Kind) also(rules ...pair) Kind {
	k.schema = append(slices.Clone(k.schema), rules...)
	return k
}

// then adds a check of what was read.
func (k Kind) then(check func(r *reader, n jsonc.Node)) Kind {
	read := k.read
	k.read = func(r *reader, n jsonc.Node) {
		read(r, n)
		check(r, n)
	}
	return k
}

// Rule adds a keyword to the JSON Schema: a check that is easy to express there.
func (k Kind) Rule(keyword string, value any) Kind { return k.also(pair{keyword, value}) }

// Then adds a check of what was read. It reports problems to the file.
func (k Kind) Then(check func(f *jsonc.File, n jsonc.Node)) Kind {
	return k.then(func(r *reader, n jsonc.Node) { check(r.File, n) })
}

// Text is a text that passes the checks.
func Text(p *string, checks ...check) Kind {
	return Kind{
		schema: object{{"type", "string"}},
		read: func(r *reader, n jsonc.Node) {
			if s, ok := r.text(n, checks...); ok {
				*p = s
			}
		},
		show: func() any { return *p },
	}
}

// URL is an absolute http or https URL, without references.
func URL(p *string, checks ...check) Kind { return Text(p, checks...).also(webAddress) }

// Name is a name like that of a schema.
func Name(p *string) Kind { return Text(p, checkAnyName).also(anyName) }

// File is the path of a file, which may be relative to the folder of the config.
func File(p *string) Kind {
	return Text(p, NonEmpty).then(func(r *reader, _ jsonc.Node) {
		if *p != "" {
			*p = r.environment.absolute(*p)
		}
	})
}

// Array is an array whose elements are of one kind.
func Array[T any](p *[]T, want string, element func(p *T) Kind) Kind {
	return Kind{
		schema: object{{"type", "array"}, {"items", element(new(T)).schema}},
		read: func(r *reader, n jsonc.Node) {
			if !r.is(n, '[', want) {
				return
			}
			*p = make([]T, len(n.Elements()))
			for i, e := range n.Elements() {
				element(&(*p)[i]).read(r, e)
			}
		},
		show: func() any {
			var all []any
			for i := range *p {
				all = append(all, element(&(*p)[i]).show())
			}
			return all
		},
	}
}

// OneOrMore is an array that is not empty, or one element without brackets.
func OneOrMore[T any](p *[]T, element func(p *T) Kind) Kind {
	all := Array(p, "array", element).also(pair{"minItems", 1})
	return Kind{
		schema: object{{"anyOf", []object{element(new(T)).schema, all.schema}}},
		read: func(r *reader, n jsonc.Node) {
			if n.Kind() != '[' {
				*p = make([]T, 1)
				element(&(*p)[0]).read(r, n)
				return
			}
			if all.read(r, n); len(*p) == 0 {
				r.Fail(n, "must not be empty")
			}
		},
		show: func() any {
			if len(*p) == 1 {
				return element(&(*p)[0]).show()
			}
			return all.show()
		},
	}
}

// Named is a value under a name.
type Named[T any] struct {
	Name  string
	Value T
}

// ByName is an object whose values are of one kind. The checks are for their names.
func ByName[T any](p *[]Named[T], want string, value func(p *T) Kind, names ...check) Kind {
	return Kind{
		schema: object{{"type", "object"}, {"additionalProperties", value(new(T)).schema}},
		read: func(r *reader, n jsonc.Node) {
			if !r.is(n, '{', want) {
				return
			}
			*p = make([]Named[T], len(n.Members()))
			for i, m := range n.Members() {
				r.check(m.Name, m.Key, names...)
				(*p)[i].Name = m.Key
				value(&(*p)[i].Value).read(r, m.Value)
			}
		},
		show: func() any {
			var o object
			for i := range *p {
				o = append(o, pair{(*p)[i].Name, value(&(*p)[i].Value).show()})
			}
			return o
		},
	}
}

// List is an array of strings that pass the checks.
func List(p *[]string, checks ...check) Kind {
	return Array(p, "array of strings", func(p *string) Kind { return Text(p, checks...) })
}

// dict is an object of strings of an upstream; name checks its keys. A value may also be a
// command that prints it: {"cmd": ["op", "read", "op://…"]}.
func (u *Upstream) dict(place string, p *map[string]string, name check) Kind {
	words := []string{}
	command := Object([]Field{{"cmd", List(&words, reference.Check), "Program and arguments. What it prints is the value."}})
	command.schema = append(command.schema, pair{"required", []string{"cmd"}})
	value := object{{"anyOf", []object{{{"type", "string"}}, command.schema}}}
	return Kind{
		schema: object{{"type", "object"}, {"additionalProperties", value}},
		read: func(r *reader, n jsonc.Node) {
			if !r.is(n, '{', "object of strings") {
				return
			}
			*p = make(map[string]string)
			for _, m := range n.Members() {
				r.check(m.Name, m.Key, name)
				if m.Value.Kind() == '{' {
					(*p)[m.Key], u.commands[place+"."+m.Key] = "", r.command(m.Value, command, &words)
				} else if s, ok := r.text(m.Value, reference.Check); ok {
					(*p)[m.Key] = s
				}
			}
		},
		show: func() any {
			var o object
			for _, key := range slices.Sorted(maps.Keys(*p)) {
				if words := u.commands[place+"."+key]; words != nil {
					o = append(o, pair{key, object{{"cmd", words}}})
					continue
				}
				o = append(o, pair{key, (*p)[key]})
			}
			return o
		},
	}
}

// command reads {"cmd": […]}, whose kind stores its words.
func (r *reader) command(n jsonc.Node, k Kind, words *[]string) []string {
	*words = nil
	before := r.ProblemCount()
	k.read(r, n)
	if r.ProblemCount() == before && (len(*words) == 0 || (*words)[0] == "") {
		r.Fail(n, `expected {"cmd": ["PROGRAM", "ARG"]} or a string`)
	}
	return *words
}

// Boolean is true or false.
func Boolean(p *bool) Kind {
	return Kind{
		schema: object{{"type", "boolean"}},
		read: func(r *reader, n jsonc.Node) {
			if k := n.Kind(); k != 't' && k != 'f' {
				r.Fail(n, "expected true or false, got %s", n.Describe())
				return
			}
			*p = n.Literal().Bool()
		},
		show: func() any { return *p },
	}
}

// inverse is a boolean that stores the opposite of its value.
func inverse(p *bool) Kind {
	return unshown(Boolean(p)).then(func(*reader, jsonc.Node) { *p = !*p })
}

// Choice is one of several words.
func Choice[T ~string](p *T, values ...T) Kind {
	words := make([]string, len(values))
	quoted := make([]string, len(values))
	for i, v := range values {
		words[i], quoted[i] = string(v), strconv.Quote(string(v))
	}
	want := strings.Join(quoted, ", ")
	return Kind{
		schema: object{{"type", "string"}, {"enum", words}},
		read: func(r *reader, n jsonc.Node) {
			s, ok := r.text(n)
			switch {
			case !ok:
			case slices.Contains(values, T(s)):
				*p = T(s)
			case nearest.Word(s, words) != "":
				r.Fail(n, "expected one of %s, got %q; did you mean %q?", want, s, nearest.Word(s, words))
			default:
				r.Fail(n, "expected one of %s, got %q", want, s)
			}
		},
		show: func() any {
			if !slices.Contains(values, *p) {
				return nil
			}
			return string(*p)
		},
	}
}

// Number is an integer in a range.
func Number(p *int, least, most int) Kind {
	return Kind{
		schema: object{{"type", "integer"}, {"minimum", least}, {"maximum", most}},
		read: func(r *reader, n jsonc.Node) {
			i, err := strconv.Atoi(string(n.Literal()))
			if err != nil || i < least || i > most {
				r.Fail(n, "expected an integer from %d to %d, got %s", least, most, n.Describe())
				return
			}
			*p = i
		},
		show: func() any { return *p },
	}
}

// Object is an object with fields of its own.
func Object(fields []Field) Kind {
	return Kind{
		schema: describe(fields),
		read:   func(r *reader, n jsonc.Node) { r.object(n, fields) },
		show:   func() any { return show(fields) },
	}
}

// ListOrObject is one value that can be written as an array or as an object. want names both.
// The value is shown as an object if isObject returns true.
func ListOrObject(list, long Kind, want string, isObject func() bool) Kind {
	return Kind{
		schema: object{{"anyOf", []object{list.schema, long.schema}}},
		read: func(r *reader, n jsonc.Node) {
			switch n.Kind() {
			case '[':
				list.read(r, n)
			case '{':
				long.read(r, n)
			default:
				r.Fail(n, "expected %s, got %s", want, n.Describe())
			}
		},
		show: func() any {
			if isObject() {
				return long.show()
			}
			return append([]any{}, list.show().([]any)...)
		},
	}
}

// sandboxKind is true, false, or an object with the settings of a sandbox.
func sandboxKind(p **Sandbox) Kind {
	defaults := defaultSandbox()
	return Kind{
		schema: object{{"anyOf", []object{{{"type", "boolean"}}, describe(defaults.fields())}}},
		read: func(r *reader, n jsonc.Node) {
			s := defaultSandbox()
			switch n.Kind() {
			case 't':
				*p = &s
			case 'f':
				*p = nil
			case '{':
				Object(s.fields()).read(r, n)
				*p = &s
			default:
				r.Fail(n, "expected true, false or an object, got %s", n.Describe())
			}
		},
		show: func() any {
			if *p == nil {
				return nil
			}
			return show((*p).fields())
		},
	}
}

// lenient turns errors below a key into warnings. Invalid values get their default.
func lenient(k Kind) Kind {
	read := k.read
	k.read = func(r *reader, n jsonc.Node) {
		r.Tolerate(func() { read(r, n) }, "; using the default")
	}
	return k
}

// unshown leaves a key out of Show, because another key shows its value.
func unshown(k Kind) Kind {
	k.show = func() any { return nil }
	return k
}

// Optional leaves a key out of Show if its value is false or 0.
func Optional(k Kind) Kind {
	show := k.show
	k.show = func() any {
		if v := show(); v != false && v != 0 {
			return v
		}
		return nil
	}
	return k
}
