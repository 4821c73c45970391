package validate

import (
	"context"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/schema"
)

const draft7Declared = `"$schema":"http://json-schema.org/draft-07/schema#"`

// problemCases have one property x with a schema, its value, and the lines that
// describe its problems. They are run with both libraries.
var problemCases = []struct {
	name, schema, value string
	want                []string
}{
	{"integer", `{"type":"integer"}`, `"three"`, []string{`arguments.x: expected integer, got string "three"`}},
	{"integer got fraction", `{"type":"integer"}`, `3.5`, []string{`arguments.x: expected integer, got number 3.5`}},
	{"string got null", `{"type":"string"}`, `null`, []string{`arguments.x: expected string, got null`}},
	{"string got number", `{"type":"string"}`, `12345678901234567890`, []string{`arguments.x: expected string, got number 12345678901234567890`}},
	{"string got object", `{"type":"string"}`, `{"b":1,"a":"<"}`, []string{`arguments.x: expected string, got object {"a":"<","b":1}`}},
	{"boolean got array", `{"type":"boolean"}`, `[1,"two"]`, []string{`arguments.x: expected boolean, got array [1,"two"]`}},
	{"object got string", `{"type":"object"}`, `"{\"a\":1}"`, []string{`arguments.x: expected object, got string "{\"a\":1}"`}},
	{"null got boolean", `{"type":"null"}`, `false`, []string{`arguments.x: expected null, got boolean false`}},
	{"two types", `{"type":["string","null"]}`, `1`, []string{`arguments.x: expected string or null, got number 1`}},
	{"three types", `{"type":["string","number","null"]}`, `true`, []string{`arguments.x: expected string, number or null, got boolean true`}},
	{"long value", `{"type":"integer"}`, `"0123456789012345678901234567890123456789x"`,
		[]string{`arguments.x: expected integer, got string "0123456789012345678901234567890123456789…"`}},
	{"wide runes", `{"type":"integer"}`, `"` + strings.Repeat("日", 50) + `"`,
		[]string{`arguments.x: expected integer, got string "` + strings.Repeat("日", 40) + `…"`}},
	{"control characters", `{"type":"integer"}`, `"a\nb\u0000\u202e"`, []string{`arguments.x: expected integer, got string "a\nb\x00\u202e"`}},
	{"control characters inside", `{"type":"integer"}`, `["\u202e"]`, []string{`arguments.x: expected integer, got array ["\u202e"]`}},
	{"long object", `{"type":"integer"}`, `{"key":"0123456789012345678901234567890123456789"}`,
		[]string{`arguments.x: expected integer, got object {"key":"01234567890123456789012345678901…`}},

	{"enum", `{"enum":["r","w"]}`, `"x"`, []string{`arguments.x: expected "r" or "w", got "x"`}},
	{"enum far", `{"enum":["read","write"]}`, `"delete"`, []string{`arguments.x: expected "read" or "write", got "delete"`}},
	{"enum near", `{"enum":["read","write"]}`, `"wirte"`, []string{`arguments.x: expected "write" or "read", got "wirte"; did you mean "write"?`}},
	{"enum case", `{"enum":["IN_PROGRESS","DONE"]}`, `"in-progress"`,
		[]string{`arguments.x: expected "IN_PROGRESS" or "DONE", got "in-progress"; did you mean "IN_PROGRESS"?`}},
	{"enum of numbers", `{"enum":[1,2]}`, `"1"`, []string{`arguments.x: expected 1 or 2, got "1"`}},
	{"enum of one", `{"enum":["only"]}`, `"onyl"`, []string{`arguments.x: expected "only", got "onyl"`}},
	{"enum long", `{"enum":[1,2,3,4,5,6,7,8,9,10,11,12]}`, `13`,
		[]string{`arguments.x: expected 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 or 12, got 13`}},
	{"enum of long values", `{"enum":["customer.subscription.pending_update_applied.v2","customer.subscription.pending_update_expired.v2"]}`, `"customer.subscription.pending_update_expird.v2"`,
		[]string{`arguments.x: expected "customer.subscription.pending_update_expired.v2" or "customer.subscription.pending_update_applied.v2", got "customer.subscription.pending_update_exp…"; ` +
			`did you mean "customer.subscription.pending_update_expired.v2"?`}},
	{"enum, near values first", `{"enum":["open","closed","on_hold","reopened"]}`, `"opened"`,
		[]string{`arguments.x: expected "open", "reopened", "closed" or "on_hold", got "opened"; did you mean "open"?`}},
	{"enum of several types", `{"enum":[1,"auto",null]}`, `"aut"`, []string{`arguments.x: expected "auto", 1 or null, got "aut"; did you mean "auto"?`}},
	{"const of a long text", `{"const":"I understand that this deletes the repository and all of its issues"}`, `"yes"`,
		[]string{`arguments.x: expected "I understand that this deletes the repository and all of its issues", got "yes"`}},
	{"enum after type", `{"type":"string","enum":["a1","b2"]}`, `5`, []string{`arguments.x: expected string, got number 5`}},
	{"const", `{"const":"v1"}`, `"v2"`, []string{`arguments.x: expected "v1", got "v2"`}},
	{"const null", `{"const":null}`, `0`, []string{`arguments.x: expected null, got 0`}},
	{"const object", `{"const":{"a":[1]}}`, `{"a":[2]}`, []string{`arguments.x: expected {"a":[1]}, got {"a":[2]}`}},

	{"minimum", `{"minimum":1}`, `0`, []string{`arguments.x: expected at least 1, got 0`}},
	{"maximum", `{"maximum":100}`, `500`, []string{`arguments.x: expected at most 100, got 500`}},
	{"maximum exact", `{"maximum":9007199254740992}`, `9007199254740993`, []string{`arguments.x: expected at most 9007199254740992, got 9007199254740993`}},
	{"exclusiveMinimum", `{"exclusiveMinimum":0}`, `0`, []string{`arguments.x: expected more than 0, got 0`}},
	{"exclusiveMaximum", `{"exclusiveMaximum":1.5}`, `1.5`, []string{`arguments.x: expected less than 1.5, got 1.5`}},
	{"exclusive as in draft 4", `{"minimum":0,"exclusiveMinimum":true}`, `0`, []string{`arguments.x: expected more than 0, got 0`}},
	{"multipleOf", `{"multipleOf":0.01}`, `0.005`, []string{`arguments.x: expected a multiple of 0.01, got 0.005`}},
	{"two limits", `{"minimum":10,"multipleOf":2}`, `3`,
		[]string{`arguments.x: expected at least 10, got 3`, `arguments.x: expected a multiple of 2, got 3`}},

	{"minLength", `{"minLength":1}`, `""`, []string{`arguments.x: expected at least 1 character, got 0`}},
	{"maxLength", `{"maxLength":2}`, `"日本語"`, []string{`arguments.x: expected at most 2 characters, got 3`}},
	{"pattern", `{"pattern":"^a+$"}`, `"b"`, []string{`arguments.x: expected to match ^a+$, got "b"`}},
	{"pattern as written", `{"pattern":"^\\S+\\u0041$"}`, `"b"`, []string{`arguments.x: expected to match ^\S+\u0041$, got "b"`}},
	{"pattern and length", `{"pattern":"^a","minLength":3}`, `"b"`,
		[]string{`arguments.x: expected at least 3 characters, got 1`, `arguments.x: expected to match ^a, got "b"`}},

	{"minItems", `{"minItems":1}`, `[]`, []string{`arguments.x: expected at least 1 item, got 0`}},
	{"maxItems", `{"maxItems":2}`, `[1,2,3]`, []string{`arguments.x: expected at most 2 items, got 3`}},
	{"uniqueItems", `{"uniqueItems":true}`, `["a",1,1.0]`, []string{`arguments.x: expected unique items, got 1 at [1] and [2]`}},
	{"items", `{"items":{"type":"string"}}`, `["a",1,"b",true]`,
		[]string{`arguments.x[1]: expected string, got number 1`, `arguments.x[3]: expected string, got boolean true`}},
	{"items of a list", `{"items":[{"type":"string"},{"type":"integer"}]}`, `[1,2]`, []string{`arguments.x[0]: expected string, got number 1`}},
	{"additionalItems", `{"items":[{"type":"string"}],"additionalItems":{"type":"integer"}}`, `["a","b"]`, []string{`arguments.x[1]: expected integer, got string "b"`}},
	{"additionalItems false", `{"items":[true],"additionalItems":false}`, `[1,2,3]`, []string{`arguments.x: expected at most 1 item, got 3`}},
	{"items false", `{"items":false}`, `[1]`, []string{`arguments.x: expected at most 0 items, got 1`}},
	{"contains", `{"contains":{"const":3}}`, `[1,2]`, []string{`arguments.x: expected at least 1 item like {"const":3}, got 0`}},
	{"nested", `{"items":{"required":["name"]}}`, `[{}]`, []string{`arguments.x[0].name: required`}},

	{"required", `{"required":["a","b"]}`, `{"b":1}`, []string{`arguments.x.a: required`}},
	{"required without a default", `{"properties":{"a":{"default":1},"b":{}},"required":["a","b"]}`, `{}`, []string{`arguments.x.b: required`}},
	{"required order", `{"required":["b","a"]}`, `{}`, []string{`arguments.x.b: required`, `arguments.x.a: required`}},
	{"required first", `{"properties":{"a":{"type":"string"}},"required":["z"]}`, `{"a":1}`,
		[]string{`arguments.x.z: required`, `arguments.x.a: expected string, got number 1`}},
	{"properties in order", `{"properties":{"b":{"type":"string"},"a":{"type":"string"}}}`, `{"b":1,"a":2}`,
		[]string{`arguments.x.a: expected string, got number 2`, `arguments.x.b: expected string, got number 1`}},
	{"odd keys", `{"additionalProperties":{"type":"string"}}`, `{"odd key":1,"0":2,"007":3,"a-b":4,"":5}`, []string{
		`arguments.x[""]: expected string, got number 5`, `arguments.x[0]: expected string, got number 2`, `arguments.x["007"]: expected string, got number 3`,
		`arguments.x.a-b: expected string, got number 4`, `arguments.x["odd key"]: expected string, got number 1`}},
	{"unknown near", `{"properties":{"path":{},"tail":{}},"additionalProperties":false}`, `{"paht":1}`,
		[]string{`arguments.x.paht: unknown property; did you mean "path"?`}},
	{"unknown in another case", `{"properties":{"file_name":{}},"additionalProperties":false}`, `{"fileName":1}`,
		[]string{`arguments.x.fileName: unknown property; did you mean "file_name"?`}},
	{"unknown but given", `{"properties":{"path":{},"tail":{}},"additionalProperties":false}`, `{"path":1,"paths":1}`,
		[]string{`arguments.x.paths: unknown property; known: path, tail`}},
	{"unknown far", `{"properties":{"path":{},"tail":{}},"additionalProperties":false}`, `{"recursive":1}`,
		[]string{`arguments.x.recursive: unknown property; known: path, tail`}},
	{"unknown of many", `{"properties":{"a1":{},"a2":{},"a3":{},"a4":{},"a5":{},"a6":{},"a7":{},"a8":{},"a9":{},"b1":{},"b2":{}},"additionalProperties":false}`, `{"zzzzz":1}`,
		[]string{`arguments.x.zzzzz: unknown property; known: a1, a2, a3, a4, a5, a6, a7, a8, a9, b1, … (11 in all)`}},
	{"unknown of none", `{"additionalProperties":false}`, `{"a":1}`, []string{`arguments.x.a: unknown property; none are allowed`}},
	{"additionalProperties", `{"properties":{"a":{}},"additionalProperties":{"type":"integer"}}`, `{"a":"","b":""}`,
		[]string{`arguments.x.b: expected integer, got string ""`}},
	{"patternProperties", `{"patternProperties":{"^n_":{"type":"number"}},"additionalProperties":false}`, `{"n_a":"x","n_b":1}`,
		[]string{`arguments.x.n_a: expected number, got string "x"`}},
	{"minProperties", `{"minProperties":1}`, `{}`, []string{`arguments.x: expected at least 1 property, got 0`}},
	{"maxProperties", `{"maxProperties":1}`, `{"a":1,"b":2}`, []string{`arguments.x: expected at most 1 property, got 2`}},
	{"propertyNames", `{"propertyNames":{"pattern":"^[a-z]+$"}}`, `{"Bad":1}`, []string{`arguments.x.Bad: as a name: expected to match ^[a-z]+$, got "Bad"`}},
	{"dependencies of names", `{"dependencies":{"user":["password"]}}`, `{"user":"u"}`, []string{`arguments.x.password: required with "user"`}},
	{"dependencies of schemas", `{"dependencies":{"user":{"required":["password"]}}}`, `{"user":"u"}`, []string{`arguments.x.password: required`}},
	{"false property", `{"properties":{"a":false}}`, `{"a":1}`, []string{`arguments.x.a: not allowed`}},

	{"anyOf by type", `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `true`, []string{`arguments.x: expected string or integer, got boolean true`}},
	{"anyOf by type, twice", `{"anyOf":[{"type":["string","null"]},{"type":"string","maxLength":1}]}`, `1`, []string{`arguments.x: expected string or null, got number 1`}},
	{"anyOf one fits", `{"anyOf":[{"type":"string","minLength":3},{"type":"null"}]}`, `"ab"`, []string{`arguments.x: expected at least 3 characters, got 2`}},
	{"anyOf of consts", `{"anyOf":[{"const":"asc"},{"const":"desc"}]}`, `"up"`, []string{`arguments.x: expected "asc" or "desc", got "up"`}},
	{"anyOf told by const", `{"anyOf":[{"properties":{"kind":{"const":"a"},"n":{"type":"integer"}}},{"properties":{"kind":{"const":"b"},"n":{"type":"string"}}}]}`,
		`{"kind":"b","n":1}`, []string{`arguments.x.n: expected string, got number 1`}},
	{"anyOf told wrong", `{"anyOf":[{"properties":{"kind":{"const":"circle"}}},{"properties":{"kind":{"enum":["square","line"]}}}]}`,
		`{"kind":"sqare"}`, []string{`arguments.x.kind: expected "square", "circle" or "line", got "sqare"; did you mean "square"?`}},
	{"anyOf not told", `{"anyOf":[{"required":["url"]},{"required":["path"]}]}`, `{}`,
		[]string{`arguments.x: expected one of 2 forms: (1) url: required (2) path: required`}},
	{"anyOf with one need", `{"anyOf":[{"required":["op","url"]},{"required":["path","op"]}]}`, `{}`, []string{`arguments.x.op: required`}},
	{"anyOf of many", `{"anyOf":[{"required":["a"]},{"required":["b"]},{"required":["c"]},{"required":["d"]}]}`, `{}`,
		[]string{`arguments.x: expected one of 4 forms: (1) a: required (2) b: required (3) c: required …`}},
	{"anyOf of values", `{"anyOf":[{"minimum":10},{"multipleOf":5}]}`, `3`,
		[]string{`arguments.x: expected one of 2 forms: (1) expected at least 10, got 3 (2) expected a multiple of 5, got 3`}},
	{"anyOf of nothing", `{"anyOf":[false,false]}`, `1`, []string{`arguments.x: not allowed`}},
	{"anyOf inside anyOf", `{"anyOf":[{"anyOf":[{"type":"string"},{"type":"null"}]},{"type":"array"}]}`, `1`,
		[]string{`arguments.x: expected string, null or array, got number 1`}},
	{"oneOf by type", `{"oneOf":[{"type":"string"},{"type":"array"}]}`, `1`, []string{`arguments.x: expected string or array, got number 1`}},
	{"oneOf twice", `{"oneOf":[{"minimum":1},{"maximum":9}]}`, `5`, []string{`arguments.x: matches more than one form`}},
	{"allOf", `{"allOf":[{"required":["a"]},{"required":["b"]},{"required":["a"]}]}`, `{}`, []string{`arguments.x.a: required`, `arguments.x.b: required`}},
	{"not", `{"not":{"const":"x"}}`, `"x"`, []string{`arguments.x: must not match {"const":"x"}`}},
	{"if then", `{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, []string{`arguments.x.b: required`}},
	{"if else", `{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":2}`, []string{`arguments.x.c: required`}},
	{"ref", `{"$ref":"#/$defs/name"}`, `""`, []string{`arguments.x: expected at least 1 character, got 0`}},
	{"ref to an odd place", `{"$ref":"#/components/a~1b%20c/0"}`, `""`, []string{`arguments.x: expected boolean, got string ""`}},
	{"ref told by const", `{"oneOf":[{"$ref":"#/$defs/cat"},{"$ref":"#/$defs/dog"}]}`, `{"kind":"dog"}`, []string{`arguments.x.bark: required`}},
	{"ref to itself", `{"$ref":"#/$defs/tree"}`, `{"left":{"left":{"right":1}}}`, []string{`arguments.x.left.left.right: expected object, got number 1`}},
	{"nullable", `{"type":"string","nullable":true}`, `1`, []string{`arguments.x: expected string or null, got number 1`}},
	{"false", `false`, `1`, []string{`arguments.x: not allowed`}},
}

const problemDefs = `,
	"$defs":{
		"name":{"type":"string","minLength":1},
		"cat":{"properties":{"kind":{"const":"cat"}},"required":["meow"]},
		"dog":{"properties":{"kind":{"const":"dog"}},"required":["bark"]},
		"tree":{"type":"object","properties":{"left":{"$ref":"#/$defs/tree"},"right":{"$ref":"#/$defs/tree"}}}
	},
	"components":{"a/b c":[{"type":"boolean"}]}`

func TestProblems(t *testing.T) {
	for _, c := range problemCases {
		for dialect, declared := range map[string]string{"draft 7": draft7Declared + ",", "2020-12": ""} {
			t.Run(c.name+"/"+dialect, func(t *testing.T) {
				schema := `{` + declared + `"properties":{"x":` + c.schema + `}` + problemDefs + `}`
				checkLines(t, schema, `{"x":`+c.value+`}`, c.want)
			})
		}
	}
}

// TestProblemsSince2019 has the keywords that draft 7 does not know.
func TestProblemsSince2019(t *testing.T) {
	for _, c := range []struct {
		name, schema, value string
		want                []string
	}{
		{"root", `{"type":"object"}`, `[]`, []string{`arguments: expected object, got array []`}},
		{"false root", `false`, `{}`, []string{`arguments: not allowed`}},
		{"prefixItems", `{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`, `[1,"a"]`,
			[]string{`arguments[0]: expected string, got number 1`, `arguments[1]: expected integer, got string "a"`}},
		{"minContains", `{"contains":{"const":1},"minContains":2}`, `[1,2]`, []string{`arguments: expected at least 2 items like {"const":1}, got 1`}},
		{"maxContains", `{"contains":{"const":1},"maxContains":1}`, `[1,1]`, []string{`arguments: expected at most 1 item like {"const":1}, got 2`}},
		{"dependentRequired", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, []string{`arguments.b: required with "a"`}},
		{"dependentSchemas", `{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1}`, []string{`arguments.b: required`}},
		{"ref with neighbors", `{"properties":{"a":{"$ref":"#/$defs/s","maxLength":2}},"$defs":{"s":{"type":"string","pattern":"^x"}}}`, `{"a":"abc"}`,
			[]string{`arguments.a: expected to match ^x, got "abc"`, `arguments.a: expected at most 2 characters, got 3`}},
		{"unevaluatedProperties", `{"allOf":[{"properties":{"a":{}}},{"if":{"required":["a"]},"then":{"properties":{"b":{}}},"else":{"properties":{"c":{}}}}],"unevaluatedProperties":false}`,
			`{"a":1,"b":2,"c":3}`, []string{`arguments.c: not allowed`}},
		{"unevaluatedProperties by reference", `{"$ref":"#/$defs/base","dependentSchemas":{"a":{"patternProperties":{"^b":{}}}},"unevaluatedProperties":{"type":"string"},"$defs":{"base":{"properties":{"a":{}}}}}`,
			`{"a":1,"bb":2,"c":3}`, []string{`arguments.c: expected string, got number 3`}},
		{"unevaluatedItems", `{"prefixItems":[{}],"contains":{"type":"string"},"unevaluatedItems":false}`, `[1,"a",2]`, []string{`arguments[2]: not allowed`}},
		{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{"type":"string"}],"additionalItems":false}`, `["a",1]`,
			[]string{`arguments: expected at most 1 item, got 2`}},
		{"unknown draft", `{"$schema":"https://example.com/own","required":["a"]}`, `{}`, []string{`arguments.a: required`}},
		{"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://example.com/a","maximum":5,"exclusiveMaximum":true}`, `5`,
			[]string{`arguments: expected less than 5, got 5`}},
		{"draft 6", `{"$schema":"http://json-schema.org/draft-06/schema","const":1}`, `2`, []string{`arguments: expected 1, got 2`}},
		{"refused by gojsonschema", `{` + draft7Declared + `,"minLength":3,"maxLength":2}`, `"a"`, []string{`arguments: expected at least 3 characters, got 1`}},
		{"root reference in draft 7", `{` + draft7Declared + `,"$ref":"#/definitions/A","definitions":{"A":{"required":["b"]}}}`, `{}`, []string{`arguments.b: required`}},
		{"root reference to the root", `{"properties":{"child":{"$ref":"#"}},"required":["name"]}`, `{"name":1,"child":{}}`, []string{`arguments.child.name: required`}},
		{"anchor", `{"properties":{"a":{"$ref":"#s"}},"$defs":{"x":{"$anchor":"s","type":"string"}}}`, `{"a":1}`, []string{`arguments.a: expected string, got number 1`}},
		{"anchor beside its use", `{"properties":{"a":{"$anchor":"s","type":"string"},"b":{"$ref":"#s"}}}`, `{"b":1}`, []string{`arguments.b: expected string, got number 1`}},
		{"anchor, escaped", `{"properties":{"a":{"$ref":"#%73"}},"definitions":{"x":{"$anchor":"s","type":"string"}}}`, `{"a":1}`, []string{`arguments.a: expected string, got number 1`}},
		{"anchor of the root", `{"$id":"https://example.com/a","$anchor":"top","properties":{"child":{"$ref":"#top"}},"required":["name"]}`, `{"name":1,"child":{}}`, []string{`arguments.child.name: required`}},
		{"anchor of 2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"a":{"$ref":"#s"}},"$defs":{"x":{"$anchor":"s","type":"string"}}}`, `{"a":1}`, []string{`arguments.a: expected string, got number 1`}},
		{"recursive anchor", `{"$ref":"#n","$defs":{"x":{"$anchor":"n","required":["v"],"properties":{"next":{"$ref":"#n"}}}}}`, `{"v":1,"next":{"v":1,"next":{}}}`, []string{`arguments.next.next.v: required`}},
		{"anchor, beside another resource", `{"properties":{"a":{"$ref":"#s"}},"$defs":{"x":{"$anchor":"s","type":"string"},"y":{"$id":"https://example.com/y"}}}`, `{"a":1}`, []string{`arguments.a: expected string, got number 1`}},
		{"dynamic anchor", `{"$ref":"#n","$defs":{"x":{"$dynamicAnchor":"n","required":["v"],"properties":{"next":{"$dynamicRef":"#n"}}}}}`, `{"v":1,"next":{"v":1,"next":{}}}`, []string{`arguments.next.next.v: required`}},
		{"dynamic reference to the root", `{"$id":"https://example.com/a","$dynamicAnchor":"n","required":["v"],"properties":{"next":{"$dynamicRef":"#n"}}}`, `{"v":1,"next":{}}`, []string{`arguments.next.v: required`}},
		{"dynamic reference by a pointer", `{"properties":{"a":{"$dynamicRef":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`, `{"a":1}`, []string{`arguments.a: expected string, got number 1`}},
		{"properties named like keywords", `{"properties":{"$ref":{"type":"string"},"enum":{"type":"array"},"pattern":{"type":"integer"},"format":{"type":"integer"}}}`,
			`{"$ref":1,"enum":1,"pattern":"a","format":"b"}`, []string{
				`arguments.$ref: expected string, got number 1`, `arguments.enum: expected array, got number 1`,
				`arguments.format: expected integer, got string "b"`, `arguments.pattern: expected integer, got string "a"`}},
	} {
		t.Run(c.name, func(t *testing.T) { checkLines(t, c.schema, c.value, c.want) })
	}
}

func TestWant(t *testing.T) {
	s := newFor(`{"properties":{"filter":{"anyOf":[{"type":"object"},{"type":"null"}]}},"required":["a"]}`)
	problems := s.Check(context.Background(), []byte(`{"filter":"{}"}`)).Problems
	if len(problems) != 2 || problems[0].Want != nil || !slices.Equal(problems[1].Want, []string{"object", "null"}) || !slices.Equal(problems[1].Path, []string{"filter"}) {
		t.Errorf("problems are %#v", problems)
	}
}

func TestDescribe(t *testing.T) {
	for raw, want := range map[string]string{`"three"`: `string "three"`, `null`: `null`, ` [1, 2] `: `array [1,2]`, `{`: `not valid JSON`} {
		if got := Describe([]byte(raw)); got != want {
			t.Errorf("%s is %s", raw, got)
		}
	}
}

func checkLines(t *testing.T, schema, value string, want []string) {
	t.Helper()
	s := newFor(schema)
	if why := s.Unjudged(); why != "" {
		t.Fatalf("not judged: %s", why)
	}
	var got []string
	for _, p := range s.Check(context.Background(), []byte(value)).Problems {
		got = append(got, p.String())
	}
	if why := s.Unjudged(); why != "" {
		t.Errorf("no longer judged: %s", why)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// newFor returns a Validator for the text of a schema.
func newFor(text string) *Validator { return New(schema.New([]byte(text))) }

func decoded(t testing.TB, text string) any {
	t.Helper()
	value, err := decode([]byte(text), maxArgumentsNodes)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}
