package validate

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"sync"

	"github.com/xeipuuv/gojsonschema"

	"mcpx/internal/schema"
)

var errClosed = errors.New("only references within the schema are followed")

// engine judges decoded values.
type engine struct {
	rule    *rule
	accepts func(any) bool // gojsonschema; nil: it cannot judge the rule
}

// newEngine returns a function that compiles the schema on its first call. Until
// then, nothing is kept: most tools are never called, and those that are seldom
// need more than quick. gojsonschema keeps ten times the size of a schema.
func newEngine(s *schema.Schema) func() *engine {
	return sync.OnceValue(func() *engine {
		root, _ := reduce(s) // compile has found no error
		return &engine{root, compileRule(root)}
	})
}

// check judges arguments. It fails if ctx ends.
func (e *engine) check(ctx context.Context, arguments any) (Verdict, error) {
	if e.accepts != nil && e.accepts(arguments) {
		return Verdict{Notes: e.notes(arguments)}, nil
	}
	if ctx.Err() != nil {
		return Verdict{}, context.Cause(ctx)
	}
	return Verdict{Notes: e.notes(arguments), Problems: report(e.rule.explain(arguments, nil))}, nil
}

// compileRule compiles a rule with gojsonschema. It returns nil if gojsonschema
// cannot judge the rule: draft 7 has no keyword for it, or the schema is one of the
// legal ones that gojsonschema refuses, such as minLength > maxLength.
func compileRule(root *rule) (accepts func(any) bool) {
	d := document{root: root}
	text := d.whole()
	if d.inexpressible {
		return nil
	}
	accepts, err := compileGojsonschema(text)
	if err != nil {
		return nil
	}
	return accepts
}

// compileGojsonschema compiles a document of draft 7.
func compileGojsonschema(root any) (func(any) bool, error) {
	loader := gojsonschema.NewSchemaLoader()
	loader.AutoDetect = false
	loader.Draft = gojsonschema.Draft7
	// NewGoLoader copies: gojsonschema rewrites the references in its input.
	compiled, err := loader.Compile(closed{gojsonschema.NewGoLoader(root)})
	if err != nil {
		return nil, err
	}
	return func(arguments any) bool {
		result, err := compiled.Validate(gojsonschema.NewRawLoader(arguments))
		return err != nil || result.Valid()
	}, nil
}

// closed is a schema whose references cannot load a file or a URL. By default,
// gojsonschema reads both.
type closed struct{ gojsonschema.JSONLoader }

func (closed) LoaderFactory() gojsonschema.JSONLoaderFactory { return refuser{} }

// refuser fails to load any document that a reference names.
type refuser struct{ gojsonschema.JSONLoader }

func (r refuser) New(string) gojsonschema.JSONLoader { return r }
func (refuser) LoadJSON() (any, error)               { return nil, errClosed }

// document writes a rule as a JSON Schema again: in the words of draft 7, or of
// 2020-12.
type document struct {
	root          *rule
	is2020        bool             // 2020-12
	names         map[*rule]string // references to rules
	definitions   map[string]any
	inexpressible bool // the draft has no keyword for something
	isShown       bool // the text is for a person, so it has no definitions
}

// whole returns the root with the definitions it needs.
func (d *document) whole() any {
	body := d.body(d.root)
	if object, ok := body.(map[string]any); ok && len(d.definitions) > 0 {
		object["$defs"] = d.definitions
	}
	return body
}

// schema returns a rule in place, or a reference if it is used more than once.
func (d *document) schema(r *rule) any {
	if r.named {
		return map[string]any{"$ref": d.reference(r)}
	}
	return d.body(r)
}

func (d *document) reference(r *rule) string {
	if r == d.root {
		return "#"
	}
	if name, ok := d.names[r]; ok {
		return name
	}
	if d.names == nil {
		d.names, d.definitions = map[*rule]string{}, map[string]any{}
	}
	number := strconv.Itoa(len(d.names))
	d.names[r] = "#/$defs/" + number
	if !d.isShown {
		d.definitions[number] = d.body(r)
	}
	return d.names[r]
}

func (d *document) body(r *rule) any {
	if r.never {
		return false
	}
	if !d.is2020 && (r.unevaluatedProperties != nil || r.unevaluatedItems != nil || r.minContains != nil || r.maxContains != nil) {
		d.inexpressible = true
	}
	out := map[string]any{}
	for name, k := range keywords {
		if field := reflect.ValueOf(k.field(r)).Elem(); !field.IsZero() {
			out[name] = d.value(field.Interface())
		}
	}
	d.items(r, out)
	d.siblings(r, out)
	return out
}

// value returns the value of a keyword.
func (d *document) value(field any) any {
	switch field := field.(type) {
	case *rule:
		return d.schema(field)
	case []*rule:
		return d.list(field)
	case map[string]*rule:
		rules := map[string]any{}
		for name, r := range field {
			rules[name] = d.schema(r)
		}
		return rules
	case []patternProperty:
		rules := map[string]any{}
		for _, p := range field {
			rules[p.pattern.String()] = d.schema(p.rule)
		}
		return rules
	case constant:
		return field[0]
	case positive:
		return json.Number(field)
	case *pattern:
		return field.String()
	}
	return field
}

func (d *document) list(rules []*rule) []any {
	list := make([]any, len(rules))
	for i, r := range rules {
		list[i] = d.schema(r)
	}
	return list
}

// items writes the rules for the items of an array, which 2020-12 has renamed.
func (d *document) items(r *rule, out map[string]any) {
	first, others := "items", "additionalItems"
	if d.is2020 {
		first, others = "prefixItems", "items"
	}
	if len(r.prefixItems) == 0 {
		others = "items"
	} else {
		out[first] = d.list(r.prefixItems)
	}
	if r.items != nil {
		out[others] = d.schema(r.items)
	}
}

// siblings rewrites what one schema of draft 7 cannot hold together: a $ref hides
// all other keywords, and there is only one keyword for dependencies.
func (d *document) siblings(r *rule, out map[string]any) {
	var all []any
	for _, keyword := range []string{"dependentRequired", "dependentSchemas"} {
		if value, ok := out[keyword]; ok && !d.is2020 {
			all = append(all, map[string]any{"dependencies": value})
			delete(out, keyword)
		}
	}
	if r.ref != nil {
		reference := d.reference(r.ref)
		if d.is2020 || len(out) == 0 && len(all) == 0 {
			out["$ref"] = reference
		} else {
			all = append(all, map[string]any{"$ref": reference})
		}
	}
	if len(all) > 0 {
		given, _ := out["allOf"].([]any)
		out["allOf"] = append(given, all...)
	}
}
