// Package signature turns the JSON Schema of a tool's input into a list of parameters as TypeScript would write it,
// short enough for a listing and complete enough to call the tool:
//
//	path: string, tail?: integer /*1..1000*/ = 10, mode?: "r" | "w", where?: {field: string, not?: {…}}
//
// A parameter is "name: type", with "?" if it is optional and "= value" if it has a default. Types are those of
// TypeScript, and integer. A comment holds bounds, a format or a pattern. Definitions are written where they are used;
// where one contains itself, it is {…}. "…" marks parts that were left out for lack of room. Objects may have further
// keys, as in JSON Schema.
//
// A signature may be wider than its schema but never narrower: no value that the schema accepts is excluded. A schema
// with properties or items but without a type is taken to describe objects or arrays, as its author intended.
//
// Schemas come from upstreams and may be malformed or hostile. Whatever they hold, a signature is one line of at most
// 2,400 bytes without control, bidi or invisible characters.
package signature

import (
	"slices"

	"mcpx/internal/schema"
)

// Of returns the parameters that a schema describes, without parentheses. It is empty for a tool without parameters and
// "…" for a schema that cannot be read.
func Of(s *schema.Schema) string { return newLayout(argumentsOf(s)).fit() }

// Parameter is a parameter of a tool, as a signature writes it.
type Parameter struct{ Name, Text string }

// Optional returns the optional parameters, with all detail.
func Optional(s *schema.Schema) []Parameter {
	t := argumentsOf(s)
	if t.kind != object || len(t.props) > maxParameters {
		return nil
	}
	l := newLayout(t)
	var all []Parameter
	for _, p := range l.params {
		if p.required || p.name == "" {
			continue
		}
		if l.write(p); p.losses == 0 {
			all = append(all, Parameter{p.name, p.text})
		}
	}
	return all
}

// Without is Of without the optional parameters of these names, which are shown elsewhere.
func Without(s *schema.Schema, names []string) string { return layoutWithout(s, names).fit() }

// TypedWithout is Typed likewise.
func TypedWithout(s *schema.Schema, names []string) string {
	return requiredOf(layoutWithout(s, names), optionalLost)
}

func layoutWithout(s *schema.Schema, names []string) *layout {
	l := newLayout(argumentsOf(s))
	l.params = slices.DeleteFunc(l.params, func(p *part) bool { return !p.required && slices.Contains(names, p.name) })
	return l
}

// Typed returns the required parameters with their types, and "…" if there are others. Objects in them show their
// required properties.
func Typed(s *schema.Schema) string { return required(s, optionalLost) }

// Required returns the names of the required parameters, and "…" if there are others.
func Required(s *schema.Schema) string { return required(s, typesLost) }

// required returns the required parameters with at least some losses of detail.
func required(s *schema.Schema, losses int) string {
	return requiredOf(newLayout(argumentsOf(s)), losses)
}

func requiredOf(l *layout, losses int) string {
	for l.drop(l.lastOptional()) {
	}
	l.least, l.hard = losses, softLimit
	return l.fit()
}

// Returns returns the type of the results that an output schema describes, in at most limit bytes: nested details are
// left out first. It has no comments, which matter only to a caller. It is empty if the schema says nothing, or cannot be read.
func Returns(s *schema.Schema, limit int) string {
	t := typeOf(s, nil)
	switch {
	case t == open || t == unknown || t == free:
		return ""
	case t.kind == word:
		return t.text
	}
	start, end := "", ""
	if t.kind == object {
		start, end = "{", "}"
	}
	l := newLayout(t)
	l.soft, l.hard, l.least = limit-len(start+end), limit-len(start+end), notesLost
	return start + l.fit() + end
}

// Some returns the parameters with the given names, and "…" if there are others. It returns the whole signature if a name
// is not that of a parameter.
func Some(s *schema.Schema, names []string) string {
	t := argumentsOf(s)
	var some []prop
	for _, p := range t.props {
		if slices.Contains(names, p.name) {
			some = append(some, p)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(some, func(p prop) bool { return p.name == name }) {
			return Of(s)
		}
	}
	l := newLayout(&typ{kind: object, props: some})
	l.more = l.more || len(some) < len(t.props) || t.rest != nil
	return l.fit()
}

// argumentsOf returns the type of a tool's arguments, which are always an object, or open if the schema cannot be read.
func argumentsOf(s *schema.Schema) *typ { return typeOf(s, []string{"object"}) }

// typeOf returns the type of the values that a schema accepts, or open if the schema cannot be read. types are the JSON
// types if the schema names none.
func typeOf(s *schema.Schema, types []string) *typ {
	root, err := s.Root()
	if err != nil {
		return open
	}
	return newBuilder(s).build(root, types)
}
