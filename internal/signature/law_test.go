package signature_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"mcpx/internal/schema"
	"mcpx/internal/signature"
)

// The law: a value that a schema accepts is never excluded by its signature. It is tried on random schemas and values,
// with a validator as the judge of the one and check as that of the other.

func TestNeverNarrower(t *testing.T) {
	var total tally
	for seed := range uint64(1000) {
		total.add(tryLaw(t, seed))
	}
	// Without these, the law would hold for a signature that says nothing, or for want of values.
	if total.accepted < 3000 || total.excluded*2 < total.rejected {
		t.Errorf("the test says little: %+v", total)
	}
}

func FuzzNeverNarrower(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { tryLaw(t, seed) })
}

// tally counts the values that schemas accepted, that they rejected, and that signatures excluded of the latter.
type tally struct{ accepted, rejected, excluded int }

func (t *tally) add(u tally) {
	t.accepted += u.accepted
	t.rejected += u.rejected
	t.excluded += u.excluded
}

func tryLaw(t *testing.T, seed uint64) (n tally) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	document := g.document()
	text := encode(t, document)
	compiled, err := compile(decode(t, text))
	if err != nil {
		return n // such as a reference that only refers to itself
	}
	signed, typed := signature.Of(schema.New([]byte(text))), signature.Typed(schema.New([]byte(text)))
	for range 25 {
		arguments := decode(t, encode(t, g.value(document, 6)))
		if _, ok := arguments.(map[string]any); !ok {
			continue
		}
		ok, err := check(signed, arguments)
		if err != nil {
			t.Fatalf("seed %d: %v in %s\nof %s", seed, err, signed, text)
		}
		fits, err := check(typed, arguments)
		if err != nil {
			t.Fatalf("seed %d: %v in %s\nof %s", seed, err, typed, text)
		}
		switch valid := compiled.Validate(arguments) == nil; {
		case valid && !fits:
			t.Fatalf("seed %d: %s is excluded by the required parameters\n%s\nbut accepted by\n%s", seed, encode(t, arguments), typed, text)
		case valid && !ok:
			t.Fatalf("seed %d: %s is excluded by\n%s\nbut accepted by\n%s", seed, encode(t, arguments), signed, text)
		case valid:
			n.accepted++
		case !ok:
			n.excluded++
			fallthrough
		default:
			n.rejected++
		}
	}
	return n
}

func compile(schema any) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", schema); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

func encode(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func decode(t *testing.T, text string) any {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// object is short for a JSON object.
type object = map[string]any

// generator makes random schemas, and values that have a chance with them.
type generator struct {
	*rand.Rand
	dialect string
	root    object
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

const (
	draft4    = "http://json-schema.org/draft-04/schema#"
	draft7    = "http://json-schema.org/draft-07/schema#"
	draft2020 = "https://json-schema.org/draft/2020-12/schema"
)

func (g *generator) document() object {
	g.dialect = pick(g, draft4, draft7, draft2020, draft2020)
	g.root = g.ofType("object", 3)
	if g.chance(20) {
		g.combine(g.root, 2)
	}
	if g.chance(5) {
		g.root = object{"$ref": "#/definitions/A"}
	}
	g.root["$schema"] = g.dialect
	a, b := g.ofType("object", 3), g.schema(2)
	g.root["definitions"] = object{"A": a, "B": b, "C": g.schema(1)}
	a["$anchor"] = "a"
	if b, ok := b.(object); ok {
		b["$dynamicAnchor"] = "b"
	}
	return g.root
}

// schema makes a schema. It always says its type: one that does not is read as its author meant it.
func (g *generator) schema(depth int) any {
	if g.chance(4) && g.dialect != draft4 {
		return g.chance(70)
	}
	switch n := g.IntN(20); {
	case n < 3:
		s := object{"$ref": pick(g, "#/definitions/A", "#/definitions/B", "#/definitions/C", "#")}
		if g.dialect == draft2020 && g.chance(30) {
			s = pick(g, object{"$ref": "#a"}, object{"$ref": "#b"}, object{"$dynamicRef": "#b"})
		}
		if g.chance(20) {
			s["type"] = pick(g, "string", "object", "integer")
		}
		return s
	case n < 4:
		return object{}
	case n < 5 && g.dialect != draft4:
		return object{"const": g.any(2)}
	case n < 7:
		return object{"enum": g.distinct(1 + g.IntN(4))}
	case n < 9 && depth > 0:
		s := object{}
		g.combine(s, depth)
		return s
	}
	s := g.ofType(pick(g, "string", "number", "integer", "boolean", "null", "object", "object", "array", "array"), depth)
	if g.chance(15) {
		s["type"] = []any{s["type"], "null"}
	}
	if g.chance(10) {
		s["nullable"] = true
	}
	if g.chance(20) && depth > 0 {
		g.combine(s, depth)
	}
	return s
}

// combine adds anyOf, oneOf or allOf. Where the schema has a type, members may do without.
func (g *generator) combine(s object, depth int) {
	members := make([]any, 1+g.IntN(3))
	for i := range members {
		members[i] = g.schema(depth - 1)
		if _, typed := s["type"]; typed && g.chance(60) {
			part := g.ofType(pick(g, "object", "object", "array", "string"), depth-1)
			delete(part, "type")
			members[i] = part
		}
	}
	s[pick(g, "anyOf", "oneOf", "allOf")] = members
}

func (g *generator) ofType(name string, depth int) object {
	s := object{"type": name}
	switch name {
	case "string":
		g.limits(s, "minLength", "maxLength")
		if g.chance(20) {
			s["pattern"] = pick(g, "^x", "y*", "^[a-z]*$")
		}
	case "number", "integer":
		g.limits(s, "minimum", "maximum")
		if g.chance(20) {
			s["exclusiveMinimum"] = g.IntN(2)
			if g.dialect == draft4 {
				s["minimum"], s["exclusiveMinimum"] = g.IntN(2), g.chance(50)
			}
		}
	case "object":
		g.objectKeywords(s, depth)
	case "array":
		g.arrayKeywords(s, depth)
	}
	return s
}

func (g *generator) limits(s object, least, most string) {
	if g.chance(25) {
		s[least] = g.IntN(3)
	}
	if g.chance(25) {
		s[most] = 1 + g.IntN(3)
	}
}

var keys = []string{"a", "b", "c", "x-y"}

func (g *generator) objectKeywords(s object, depth int) {
	if depth <= 0 {
		return
	}
	properties := object{}
	for _, k := range keys[:g.IntN(len(keys)+1)] {
		properties[k] = g.schema(depth - 1)
	}
	if g.chance(85) {
		s["properties"] = properties
	}
	if g.chance(40) {
		s["required"] = []any{pick(g, keys...)}
	}
	if g.chance(35) {
		s["additionalProperties"] = pick(g, any(true), any(false), g.schema(depth-1))
		if g.dialect == draft4 {
			s["additionalProperties"] = g.schema(depth - 1)
		}
	}
	if g.chance(15) {
		s["patternProperties"] = object{"^[ax]": g.schema(depth - 1)}
	}
	if g.chance(10) {
		s["not"] = g.ofType("object", depth-1)
	}
}

func (g *generator) arrayKeywords(s object, depth int) {
	g.limits(s, "minItems", "maxItems")
	if depth <= 0 {
		return
	}
	if g.chance(60) {
		s["items"] = g.schema(depth - 1)
		return
	}
	leading := []any{g.schema(depth - 1), g.schema(depth - 1)}
	rest := g.schema(depth - 1)
	if g.dialect == draft2020 {
		s["prefixItems"] = leading
		if g.chance(50) {
			s["items"] = rest
		}
		return
	}
	s["items"] = leading
	if g.chance(50) {
		s["additionalItems"] = rest
	}
}

// distinct makes values for an enum, which must differ.
func (g *generator) distinct(n int) []any {
	all := []any{"x", "y", 1, 2.5, nil, true, []any{}, []any{1, "x"}, object{"a": "x"}}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

// any makes a value of any kind.
func (g *generator) any(depth int) any {
	switch n := g.IntN(10); {
	case n == 0 && depth > 0:
		return []any{g.any(depth - 1)}
	case n == 1 && depth > 0:
		return object{pick(g, keys...): g.any(depth - 1)}
	}
	return pick[any](g, "x", "y", "zz", "", 0, 1, json.Number("1.0"), 2.5, -3, nil, true, false, []any{}, object{})
}

// value makes a value that a schema may accept.
func (g *generator) value(schema any, depth int) any {
	s, ok := schema.(object)
	if !ok || depth == 0 || g.chance(5) {
		return g.any(2)
	}
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := s[key].(string); ok {
			return g.value(g.target(ref), depth-1)
		}
	}
	if v, ok := s["const"]; ok {
		return v
	}
	if values, ok := s["enum"].([]any); ok {
		return pick(g, values...)
	}
	base := g.ofSchema(s, depth)
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		members, _ := s[key].([]any)
		for _, m := range members {
			base = g.overlay(base, g.value(m, depth-1))
		}
	}
	return base
}

func (g *generator) target(ref string) any {
	if ref == "#" {
		return g.root
	}
	definitions, _ := g.root["definitions"].(object)
	if place, ok := map[string]string{"#a": "A", "#b": "B"}[ref]; ok {
		return definitions[place]
	}
	return definitions[strings.TrimPrefix(ref, "#/definitions/")]
}

// overlay puts the properties of two objects together, or takes either value.
func (g *generator) overlay(a, b any) any {
	x, ok := a.(object)
	y, both := b.(object)
	if !ok || !both {
		return pick(g, a, b)
	}
	x = maps.Clone(x)
	maps.Copy(x, y)
	return x
}

func (g *generator) ofSchema(s object, depth int) any {
	name, _ := s["type"].(string)
	if types, ok := s["type"].([]any); ok {
		name, _ = pick(g, types...).(string)
	}
	switch name {
	case "string":
		return pick(g, "x", "y", "zz", "xyz", "")
	case "number", "integer":
		return pick[any](g, 0, 1, 2, json.Number("2.0"), 2.5, -3)
	case "boolean":
		return g.chance(50)
	case "null":
		return nil
	case "array":
		return g.array(s, depth)
	}
	v := object{}
	properties, _ := s["properties"].(object)
	for _, k := range keys {
		if p, known := properties[k]; known && g.chance(70) {
			v[k] = g.value(p, depth-1)
		} else if g.chance(25) {
			v[k] = g.value(s["additionalProperties"], depth-1)
		}
	}
	return v
}

func (g *generator) array(s object, depth int) any {
	list := make([]any, g.IntN(4))
	leading, ok := s["prefixItems"].([]any)
	rest := s["items"]
	if !ok {
		if leading, ok = s["items"].([]any); ok {
			rest = s["additionalItems"]
		}
	}
	for i := range list {
		if i < len(leading) {
			list[i] = g.value(leading[i], depth-1)
			continue
		}
		list[i] = g.value(rest, depth-1)
	}
	return list
}
