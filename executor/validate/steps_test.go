package validate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/rawjson"
)

// costly is a schema whose property tree takes 2^40 steps.
var costly = `{"properties":{"n":{"type":"integer"},"tree":{"$ref":"#/$defs/0"}},"$defs":` +
	strings.TrimPrefix(chain(`{"anyOf":[{"$ref":"#/$defs/%[2]d"},{"$ref":"#/$defs/%[2]d"}]}`, 40), `{"$ref":"#/$defs/0","$defs":`)

// TestCostlyCheckCostsOneCall: of a call whose check would take too long, only the cheap members
// are checked. Every other call is checked as usual.
func TestCostlyCheckCostsOneCall(t *testing.T) {
	for _, declared := range []string{"", draft7Declared + ","} {
		first, second := newFor("{"+declared+costly[1:]), newFor("{"+declared+costly[1:])
		var calls sync.WaitGroup
		for range 4 {
			calls.Go(func() {
				checkVerdict(t, first, `{"n":1,"tree":1}`, "check: took too long", 0)
				checkVerdict(t, first, `{"n":"no integer","tree":1}`, "check: took too long", 1)
			})
		}
		for range 100 {
			for _, s := range []*Validator{first, second} {
				checkVerdict(t, s, `{"n":"no integer"}`, "", 1)
			}
		}
		calls.Wait()
	}
}

// checkVerdict checks why arguments are not checked, and the number of problems.
func checkVerdict(t *testing.T, s *Validator, raw, unchecked string, problems int) {
	t.Helper()
	verdict := s.Check(context.Background(), []byte(raw))
	if verdict.Unchecked != unchecked {
		t.Errorf("%.100s is unchecked because %q, want %q", raw, verdict.Unchecked, unchecked)
	}
	if len(verdict.Problems) != problems {
		t.Errorf("%.100s has the problems %v, want %d", raw, verdict.Problems, problems)
	}
}

// TestManyForms: calls are checked if that takes a tenth of a second.
func TestManyForms(t *testing.T) {
	forms := numbered(600, `{"type":"object","properties":{"kind":{"const":"k%d"},"n":{"type":"integer"}},"required":["kind","n"],"additionalProperties":false}`)
	for _, keyword := range []string{"anyOf", "oneOf"} {
		s := newFor(`{"properties":{"steps":{"items":{"` + keyword + `":[` + forms + `]}}}}`)
		right, wrong := list(50, `{"kind":"k600","n":1}`), list(49, `{"kind":"k600","n":1}`)
		checkVerdict(t, s, `{"steps":`+right+`}`, "", 0)
		checkVerdict(t, s, `{"steps":`+strings.TrimSuffix(wrong, "]")+`,{"kind":"k600","n":"1"}]}`, "", 1)
	}
	s := newFor(`{"items":{"anyOf":[` + forms + `]}}`)
	checkVerdict(t, s, list(5_000, `{"kind":"k1","n":1}`), "", 0) // the first form matches
}

// TestTooCostly: checks that would take more than three seconds are not made.
func TestTooCostly(t *testing.T) {
	for _, c := range []struct{ name, schema, value string }{
		{"anyOf", chain(`{"anyOf":[{"$ref":"#/$defs/%[2]d"},{"$ref":"#/$defs/%[2]d"}]}`, 40), `1`},
		{"oneOf", chain(`{"oneOf":[{"$ref":"#/$defs/%[2]d"},{"$ref":"#/$defs/%[2]d"}]}`, 40), `1`},
		{"allOf", chain(`{"allOf":[{"$ref":"#/$defs/%[2]d"},{"$ref":"#/$defs/%[2]d"}]}`, 40), `"a"`},
		{"not", chain(`{"allOf":[{"not":{"$ref":"#/$defs/%[2]d"}},{"not":{"$ref":"#/$defs/%[2]d"}}]}`, 30), `1`},
		{"if", chain(`{"if":{"$ref":"#/$defs/%[2]d"},"then":{"$ref":"#/$defs/%[2]d"},"else":{"$ref":"#/$defs/%[2]d"}}`, 40), `1`},
		{"forms of many items", `{"items":{"anyOf":[` + numbered(600, `{"required":["a%d"]}`) + `]}}`, list(2_000, `{}`)},
		{"long enum", `{"items":{"enum":[` + numbered(10_000, `"value %d"`) + `]}}`, list(2_000, `"valeu 7"`)},
		{"patterns of names", `{"patternProperties":{` + numbered(100, `"^[a-z]{%d}$":{}`) + `}}`, `{` + numbered(2_000, `"abc%d":1`) + `}`},
		{"categories of Unicode", `{"patternProperties":{` + numbered(50, `"^\\p{L}{%d}$":{}`) + `}}`, `{` + numbered(2_000, `"abc%d":1`) + `}`},
		{"many problems", `{"items":{"type":"string"}}`, list(maxWrong+1, `1`)},
		{"unevaluated", `{"allOf":[{"unevaluatedProperties":{"$ref":"#"}}],"unevaluatedProperties":{"$ref":"#"}}`, strings.Repeat(`{"a":1,"b":`, 40) + `1` + strings.Repeat(`}`, 40)},
	} {
		t.Run(c.name, func(t *testing.T) { checkVerdict(t, newFor(c.schema), c.value, "check: took too long", 0) })
	}
}

func TestCanceled(t *testing.T) {
	gone := errors.New("the client is gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(gone)
	s := newFor(costly)
	if verdict := s.Check(ctx, []byte(`{"tree":1}`)); verdict.Unchecked != "check: the client is gone" {
		t.Errorf("verdict: %v", verdict)
	}
	m := meter{ctx: ctx, left: maxSteps}
	m.rule(s.judge.engine().rule, decoded(t, `{"tree":1}`), place{})
	if m.visits > 2000 {
		t.Errorf("counted %d visits after the end of the call", m.visits)
	}
}

// TestSlots: if there are more costly checks than may run at the same time, the others wait and
// are not skipped. A check stops waiting when its call is canceled.
func TestSlots(t *testing.T) {
	for range cap(slots) {
		slots <- struct{}{}
	}
	s := newFor(`{"items":{"type":"integer"}}`)
	long := []byte(`["no integer"` + strings.Repeat(`,1`, cheapBytes) + `]`)
	ctx, cancel := context.WithCancel(context.Background())
	verdict := make(chan Verdict)
	go func() { verdict <- s.Check(ctx, long) }()
	if problems := s.Check(context.Background(), []byte(`["no integer"]`)).Problems; len(problems) != 1 {
		t.Errorf("a check that is not costly: %v", problems)
	}
	cancel()
	if v := <-verdict; v.Unchecked != "check: context canceled" {
		t.Errorf("a canceled check: %v", v)
	}
	go func() { verdict <- s.Check(context.Background(), long) }()
	release()
	if v := <-verdict; len(v.Problems) != 1 {
		t.Errorf("after another has ended: %v", v)
	}
	for range cap(slots) - 1 {
		release()
	}
}

// hostile are schemas and values that make an engine work hard.
var hostile = []struct{ name, schema, value string }{
	{"forms", chain(`{"anyOf":[{"$ref":"#/$defs/%[2]d"},{"$ref":"#/$defs/%[2]d"}]}`, 10), `1`},
	{"one of forms", chain(`{"oneOf":[{"$ref":"#/$defs/%[2]d"},{"$ref":"#/$defs/%[2]d"}]}`, 10), `1`},
	{"recursive", `{"oneOf":[{"properties":{"a":{"$ref":"#"}},"required":["b"]},{"properties":{"a":{"$ref":"#"}},"required":["c"]}]}`, strings.Repeat(`{"a":`, 10) + `1` + strings.Repeat(`}`, 10)},
	{"unevaluated", `{"properties":{"a":{"$ref":"#"}},"allOf":[{"unevaluatedProperties":{"type":"integer"}}],"unevaluatedProperties":false}`, strings.Repeat(`{"b":1,"c":2,"a":`, 12) + `1` + strings.Repeat(`}`, 12)},
	{"many wrong types", `{"items":{"type":"string"}}`, list(3000, `1`)},
	{"long names above wrong types", `{"additionalProperties":{"items":{"type":"string"}}}`, `{"` + strings.Repeat("x", 20_000) + `":` + list(300, `1`) + `}`},
	{"long enum", `{"items":{"enum":[` + numbered(2000, `"value %d"`) + `]}}`, list(50, `"valeu 7"`)},
	{"long enums in forms", `{"anyOf":[{"enum":[` + numbered(2000, `"value %d"`) + `]},{"enum":[` + numbered(2000, `"word %d"`) + `]}]}`, `"valeu 7"`},
	{"large value for an enum", `{"anyOf":[` + numbered(100, `{"enum":[%d,true]}`) + `]}`, list(200, `{"a":"b"}`)},
	{"large value of the wrong type", `{"anyOf":[` + numbered(300, `{"type":"string","minLength":%d}`) + `]}`, list(3000, `{"a":"b"}`)},
	{"unique", `{"uniqueItems":true}`, list(3000, `{"a":["b"]}`)},
	{"contains", `{"contains":{"type":"string","minLength":3}}`, list(3000, `"a"`)},
	{"required", `{"items":{"anyOf":[{"required":[` + numbered(500, `"a%d"`) + `]},{"required":[` + numbered(500, `"b%d"`) + `]}]}}`, list(20, `{}`)},
	{"unknown properties", `{"properties":{` + numbered(500, `"name%d":{}`) + `},"additionalProperties":false}`, `{` + numbered(500, `"nmae%d":1`) + `}`},
	{"patterns of names", `{"patternProperties":{` + numbered(50, `"^[a-z]{%d}$":{"type":"integer"}`) + `}}`, `{` + numbered(100, `"abc%d":1`) + `}`},
	{"pattern", `{"items":{"pattern":"([a-z]?){50}x$"}}`, list(10, `"`+strings.Repeat("ab", 100)+`"`)},
	{"numbers", `{"items":{"multipleOf":1e-300,"minimum":1e300,"maximum":1e-300}}`, list(100, `1.5e-200`)},
	{"not", `{"items":{"not":{"properties":{` + numbered(500, `"a%d":{"type":"string"}`) + `}}}}`, list(50, `1`)},
	{"dependencies", `{"dependentRequired":{"a":[` + numbered(500, `"a%d"`) + `]},"dependentSchemas":{"a":{"required":[` + numbered(500, `"b%d"`) + `]}}}`, `{"a":1}`},
	{"names", `{"propertyNames":{"maxLength":1}}`, `{` + numbered(1000, `"abc%d":1`) + `}`},
}

func list(n int, item string) string { return "[" + strings.Repeat(item+",", n-1) + item + "]" }

// numbered returns a list of n items, made with the numbers from 1.
func numbered(n int, format string) string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(format, i+1))
	}
	return strings.Join(items, ",")
}

// TestWork checks the law that a check does no more work than was counted before.
func TestWork(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			s := newFor(c.schema)
			if verdict := s.Check(context.Background(), []byte(c.value)); verdict.Unchecked != "" {
				t.Errorf("unchecked: %s", verdict.Unchecked)
			}
			checkWork(t, s, []byte(c.value))
		})
	}
}

// checkWork compares the memory that a check allocates with its steps: unlike time, that is the
// same on every machine.
func checkWork(t *testing.T, s *Validator, raw []byte) {
	if s.Unjudged() != "" || rawjson.Check(raw) != nil {
		return
	}
	value, err := decode(raw, maxArgumentsNodes)
	if err != nil {
		return
	}
	engine := s.judge.engine()
	steps, err := countSteps(context.Background(), engine.rule, value, maxSteps)
	if err != nil {
		return
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = engine.check(context.Background(), value)
	runtime.ReadMemStats(&after)
	const bytesPerStep, always = 3, 1 << 20
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > uint64(steps*bytesPerStep+always) {
		t.Errorf("%d bytes in %d steps", bytes, steps)
	}
}
