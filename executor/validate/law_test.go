package validate

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"mcpx/internal/schema"
)

// FuzzCompile: whatever the bytes, the same arguments get the same verdict, a check does no
// more work than was counted, and a problem is one line.
func FuzzCompile(f *testing.F) {
	for _, c := range problemCases {
		f.Add([]byte(c.schema), []byte(c.value))
	}
	f.Add([]byte(`{"$ref":"#"}`), []byte(`{}`))
	f.Add([]byte(chain(`{"anyOf":[{"$ref":"#/$defs/%[2]d"},{"$ref":"#/$defs/%[2]d"}]}`, 10)), []byte(`[[]]`))
	f.Fuzz(func(t *testing.T, text, value []byte) {
		s := New(schema.New(text))
		verdict := s.Check(context.Background(), value)
		if again := s.Check(context.Background(), value); again.Unchecked != verdict.Unchecked || len(again.Problems) != len(verdict.Problems) {
			t.Errorf("verdict %v, then %v", verdict, again)
		}
		checkWork(t, s, value)
		for _, p := range verdict.Problems {
			if line := p.String(); line == "" || strings.ContainsAny(line, "\n\r\x00") {
				t.Errorf("line %q", line)
			}
		}
	})
}

// FuzzLaws checks the laws with a schema and values made from a seed.
func FuzzLaws(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(checkLaws)
}

func TestLaws(t *testing.T) {
	for seed := range uint64(400) {
		checkLaws(t, seed)
	}
}

func checkLaws(t *testing.T, seed uint64) {
	r := maker{rand.New(rand.NewPCG(seed, 0))}
	raw := encoded(t, r.document())
	plain := decoded(t, raw).(map[string]any)
	s := newFor(raw)
	accepts, err := compileSanthosh(plain, since2019)
	engines := []*engine{}
	for dialect, draft := range map[string]schema.Draft{"http://json-schema.org/draft-07/schema": schema.Draft7, "https://json-schema.org/draft/2020-12/schema": schema.Draft2020} {
		plain["$schema"] = dialect
		j, err := compile(schema.New([]byte(encoded(t, plain))))
		if err != nil {
			continue
		}
		e := j.engine()
		if e.accepts != nil {
			engines = append(engines, e)
		}
		if oracle, err := compileSanthosh(decoded(t, written(t, e.rule, draft)), draft); err != nil {
			t.Errorf("seed %d: %s does not compile: %v", seed, written(t, e.rule, draft), err)
		} else {
			engines = append(engines, &engine{e.rule, oracle})
		}
	}
	pointers := newFor(pointersForAnchors.Replace(raw))
	if s.Unjudged() == "" && pointers.Unjudged() != "" {
		t.Errorf("seed %d: %s is judged, but not with pointers for anchors: %s", seed, raw, pointers.Unjudged())
	}
	for range 8 {
		text := encoded(t, r.value(4))
		value := decoded(t, text)
		// What the plain schema accepts is never refused.
		if problems := s.Check(context.Background(), []byte(text)).Problems; err == nil && problems != nil && accepts(value) {
			t.Errorf("seed %d: %s refuses %s: %v", seed, raw, text, problems)
		}
		// An anchor is another name for a place.
		if anchored, pointed := len(s.Check(context.Background(), []byte(text)).Problems), len(pointers.Check(context.Background(), []byte(text)).Problems); s.Unjudged() == "" && (anchored == 0) != (pointed == 0) {
			t.Errorf("seed %d: %s on %s: %d problems, %d with pointers for anchors", seed, raw, text, anchored, pointed)
		}
		// The libraries and the explainer are of one opinion. A note is one line.
		for _, e := range engines {
			if found := e.rule.explain(value, nil); e.accepts(value) != (len(found) == 0) {
				t.Errorf("seed %d: %s on %s: library says %v, found %v", seed, written(t, e.rule, since2019), text, e.accepts(value), found)
			}
			checkCount(t, seed, e, value)
			for _, note := range e.notes(value) {
				if strings.ContainsAny(note.String(), "\n\r\x00") {
					t.Errorf("seed %d: %s on %s: note %q", seed, raw, text, note)
				}
			}
		}
	}
}

// checkCount: meter finds out whether a value is valid, and so do all parts of a rule together,
// except for members that are not evaluated.
func checkCount(t *testing.T, seed uint64, e *engine, value any) {
	t.Helper()
	schema, text := written(t, e.rule, since2019), encoded(t, value)
	isValid := e.rule.matches(value)
	m := meter{ctx: context.Background(), left: maxSteps}
	if ok := m.rule(e.rule, value, place{}); ok && isValid != (m.wrong == 0) {
		t.Errorf("seed %d: %s on %s: valid is %v, but %d problems were counted", seed, schema, text, isValid, m.wrong)
	}
	some := m.affordable(e.rule.parts(value, map[*rule]bool{}))
	fits := some.matches(value)
	if isValid && !fits || !isValid && fits && !strings.Contains(schema, "unevaluated") {
		t.Errorf("seed %d: %s on %s: valid is %v, but the parts %s say %v", seed, schema, text, isValid, written(t, some, since2019), fits)
	}
	if accepts := compileRule(some); accepts != nil && accepts(value) != fits {
		t.Errorf("seed %d: %s on %s: valid is %v, but gojsonschema disagrees", seed, written(t, some, since2019), text, fits)
	}
}

// written is a rule as JSON Schema.
func written(t *testing.T, r *rule, draft schema.Draft) string {
	return encoded(t, (&document{root: r, is2020: draft >= since2019}).whole())
}

// pointersForAnchors replaces the anchors that maker.document defines.
var pointersForAnchors = strings.NewReplacer(`"$ref":"#x"`, `"$ref":"#/$defs/a"`, `"$ref":"#y"`, `"$ref":"#/$defs/b"`, `"$dynamicRef":"#y"`, `"$ref":"#/$defs/b"`)

func encoded(t testing.TB, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// maker makes random schemas and values from few names and numbers, so that
// they often meet.
type maker struct{ *rand.Rand }

func pickOne[T any](r maker, choices ...T) T { return choices[r.IntN(len(choices))] }

// document makes a schema with definitions. Most have an anchor; some stand in
// another resource, which has anchors of the same names.
func (r maker) document() map[string]any {
	d := r.schema(4)
	d["$defs"] = r.definitions()
	if r.IntN(6) == 0 {
		inner := r.schema(2)
		inner["$id"] = "https://example.com/inner"
		inner["$defs"] = r.definitions()
		d["$defs"].(map[string]any)["c"] = inner
	}
	return d
}

func (r maker) definitions() map[string]any {
	a, b := r.schema(3), r.schema(2)
	if r.IntN(8) > 0 {
		a["$anchor"] = "x"
	}
	if r.IntN(8) > 0 {
		b["$dynamicAnchor"] = "y"
	}
	return map[string]any{"a": a, "b": b}
}

func (r maker) name() string { return pickOne(r, "a", "b", "cc") }

func (r maker) value(depth int) any {
	n := 9
	if depth <= 0 {
		n = 7
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2, 3:
		return json.Number(pickOne(r, "0", "1", "2", "1.0", "2.5", "-3", "1e1"))
	case 4, 5, 6:
		return pickOne(r, "", "a", "ab", "abc", "x y")
	case 7:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, r.value(depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range r.IntN(4) {
		object[r.name()] = r.value(depth - 1)
	}
	return object
}

func (r maker) schema(depth int) map[string]any {
	s := map[string]any{}
	for range r.IntN(4) {
		name, value := r.keyword(depth)
		s[name] = value
	}
	return s
}

func (r maker) schemas(depth int) []any {
	list := []any{r.sub(depth)}
	for range r.IntN(3) {
		list = append(list, r.sub(depth))
	}
	return list
}

func (r maker) sub(depth int) any {
	if r.IntN(12) == 0 {
		return r.IntN(2) == 0
	}
	return r.schema(depth - 1)
}

func (r maker) subs(depth int) map[string]any {
	m := map[string]any{}
	for range r.IntN(3) {
		m[r.name()] = r.sub(depth)
	}
	return m
}

func (r maker) keyword(depth int) (name string, value any) {
	if depth > 0 && r.IntN(3) > 0 {
		return r.applicator(depth)
	}
	switch r.IntN(9) {
	case 0:
		return "type", pickOne[any](r, "string", "integer", "object", "array", []any{"null", "number"}, "boolean", "unheard-of")
	case 1:
		return "enum", []any{r.value(1), r.value(1), r.value(0)}
	case 2:
		return "const", r.value(1)
	case 3:
		return pickOne(r, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), json.Number(pickOne(r, "1", "2", "0.5"))
	case 4:
		limit := pickOne(r, "Length", "Items", "Properties")
		return pickOne(r, "min", "max") + limit, r.IntN(3)
	case 5:
		return pickOne(r, "pattern", "format"), pickOne(r, "^a", "b$", `^\S+$`, "(?=a)", "email", "date")
	case 6:
		return "required", []any{r.name()}
	case 7:
		return "default", r.value(0)
	}
	return "uniqueItems", true
}

func (r maker) applicator(depth int) (name string, value any) {
	switch r.IntN(9) {
	case 0:
		return "properties", r.subs(depth)
	case 1:
		return pickOne(r, "additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems", "contains"), r.sub(depth)
	case 2:
		return pickOne(r, "allOf", "anyOf", "oneOf", "prefixItems"), r.schemas(depth)
	case 3:
		return pickOne(r, "not", "if", "then", "else", "propertyNames"), r.sub(depth)
	case 4:
		return "patternProperties", map[string]any{pickOne(r, "^a", "c", "(?=b)"): r.sub(depth)}
	case 5:
		return pickOne(r, "dependentSchemas", "dependencies"), r.subs(depth)
	case 6:
		return pickOne(r, "dependentRequired", "dependencies"), map[string]any{r.name(): []any{r.name()}}
	case 7:
		return pickOne(r, "minContains", "maxContains"), r.IntN(3)
	}
	if r.IntN(6) == 0 {
		return "$dynamicRef", "#y"
	}
	return "$ref", pickOne(r, "#", "#/$defs/a", "#/$defs/b", "#x", "#y", "#x", "#y", "#/$defs/c", "https://example.com/inner")
}
