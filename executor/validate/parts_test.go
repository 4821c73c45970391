package validate

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// costlyTree is a property that takes 2^40 steps, and its definitions.
const costlyTree = `"tree":{"$ref":"#/$defs/0"}`

func costlyDefinitions() string {
	return strings.TrimPrefix(chain(`{"anyOf":[{"$ref":"#/$defs/%[2]d"},{"$ref":"#/$defs/%[2]d"}]}`, 40), `{"$ref":"#/$defs/0",`)
}

// TestParts: if one property is too costly to check, the others still are.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		name, schema, value string // the schema without definitions
		want                []string
	}{
		{"valid", `"type":"object","properties":{"n":{"type":"integer"},TREE},"required":["n"],"additionalProperties":false`, `{"n":1,"tree":1}`, nil},
		{"type", `"properties":{"n":{"type":"integer"},TREE}`, `{"n":"x","tree":1}`, []string{`arguments.n: expected integer, got string "x"`}},
		{"required", `"properties":{TREE},"required":["n"]`, `{"tree":1}`, []string{`arguments.n: required`}},
		{"unknown", `"properties":{"name":{},TREE},"additionalProperties":false`, `{"nmae":1,"tree":1}`, []string{`arguments.nmae: unknown property; did you mean "name"?`}},
		{"declared by a pattern", `"properties":{TREE},"patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false`, `{"x":1,"tree":1}`, nil},
		{"pattern", `"properties":{TREE},"patternProperties":{"^x":{"type":"integer"}}`, `{"x":"a","tree":1}`, []string{`arguments.x: expected integer, got string "a"`}},
		{"pattern of a costly property", `"properties":{TREE},"patternProperties":{"^t":{"type":"boolean"}}`, `{"tree":1}`, []string{`arguments.tree: expected boolean, got number 1`}},
		{"others", `"properties":{TREE},"additionalProperties":{"type":"integer"}`, `{"x":"a","tree":1}`, []string{`arguments.x: expected integer, got string "a"`}},
		{"costly others", `"properties":{"n":{"type":"integer"}},"additionalProperties":{"$ref":"#/$defs/0"}`, `{"n":"x","tree":1}`, []string{`arguments.n: expected integer, got string "x"`}},
		{"costly pattern", `"patternProperties":{"^t":{"$ref":"#/$defs/0"}},"additionalProperties":false`, `{"n":1,"tree":1}`, []string{`arguments.n: unknown property; none are allowed`}},
		{"names", `"properties":{TREE},"propertyNames":{"maxLength":4}`, `{"names":1,"tree":1}`, []string{`arguments.names: as a name: expected at most 4 characters, got 5`}},
		{"number of properties", `"properties":{TREE},"maxProperties":1`, `{"n":1,"tree":1}`, []string{`arguments: expected at most 1 property, got 2`}},
		{"dependent", `"properties":{TREE},"dependentRequired":{"tree":["n"]}`, `{"tree":1}`, []string{`arguments.n: required with "tree"`}},
		{"reference", `"properties":{"n":{"$ref":"#/$defs/40"},TREE}`, `{"n":1,"tree":1}`, []string{`arguments.n: expected string, got number 1`}},
		{"reference to the root", `"properties":{"inner":{"$ref":"#"},"n":{"type":"integer"},TREE}`, `{"inner":{"n":"x"},"tree":1}`, []string{`arguments.inner.n: expected integer, got string "x"`}},
		{"in allOf", `"allOf":[{"properties":{TREE,"n":{"type":"integer"}},"required":["m"]},{"properties":{"n":{"minimum":5}}}]`, `{"n":1,"tree":1}`, []string{`arguments.m: required`, `arguments.n: expected at least 5, got 1`}},
		{"behind a reference", `"$ref":"#/$defs/root"`, `{"n":"x","tree":1}`, []string{`arguments.n: expected integer, got string "x"`}},
		{"anyOf", `"properties":{TREE},"anyOf":[{"required":["n"]},{"required":["m"]}]`, `{"tree":1}`, []string{`arguments: expected one of 2 forms: (1) n: required (2) m: required`}},
		{"if", `"properties":{TREE},"if":{"required":["tree"]},"then":{"required":["n"]}`, `{"tree":1}`, []string{`arguments.n: required`}},
		{"costly anyOf", `"properties":{"n":{"type":"integer"}},"anyOf":[{"properties":{TREE}},{"required":["m"]}]`, `{"n":"x","tree":1}`, []string{`arguments.n: expected integer, got string "x"`}},
		{"costly not", `"properties":{"n":{}},"not":{"properties":{TREE}}`, `{"n":1,"tree":1}`, nil},
		{"unevaluated", `"anyOf":[{"properties":{TREE}},{"properties":{"n":{}}}],"unevaluatedProperties":false`, `{"n":1,"tree":1}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := `"root":{"properties":{"n":{"type":"integer"},TREE}},`
			schema := `{` + c.schema + `,` + strings.Replace(costlyDefinitions(), `"$defs":{`, `"$defs":{`+root, 1)
			schema = strings.ReplaceAll(schema, "TREE", costlyTree)
			verdict := newFor(schema).Check(context.Background(), []byte(c.value))
			if verdict.Unchecked != "check: took too long" {
				t.Errorf("unchecked: %q", verdict.Unchecked)
			}
			var got []string
			for _, p := range verdict.Problems {
				got = append(got, p.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// TestPartsAreBounded has many members that are too costly. Counting their steps takes no more
// than that of one.
func TestPartsAreBounded(t *testing.T) {
	s := newFor(`{"properties":{"n":{"type":"integer"},` + numbered(200, `"tree%d":{"$ref":"#/$defs/0"}`) + `},` + costlyDefinitions())
	raw := `{"n":"x",` + numbered(200, `"tree%d":1`) + `}`
	checkVerdict(t, s, raw, "check: took too long", 1)
	m := meter{ctx: context.Background(), left: maxSteps}
	value := decoded(t, raw)
	some := m.affordable(s.judge.engine().rule.parts(value, map[*rule]bool{}))
	if m.visits > maxSteps/visitSteps {
		t.Errorf("%d visits", m.visits)
	}
	if _, err := countSteps(context.Background(), some, value, maxSteps); err != nil {
		t.Errorf("the parts: %v", err)
	}
}
