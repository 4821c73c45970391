package signature_test

import (
	"testing"

	"mcpx/internal/schema"
	"mcpx/internal/signature"
)

type signatureCase struct{ name, schema, want string }

func runCases(t *testing.T, cases []signatureCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := signature.Of(schema.New([]byte(c.schema))); got != c.want {
				t.Errorf("Of(%s)\n got %s\nwant %s", c.schema, got, c.want)
			}
		})
	}
}

// params wraps properties into the schema of a tool.
func params(properties string) string {
	return `{"type":"object","properties":{` + properties + `}}`
}

func TestOfParameters(t *testing.T) {
	runCases(t, []signatureCase{
		{"none", `{"type":"object","properties":{}}`, ``},
		{"no schema", ``, ``},
		{"empty schema", `{}`, ``},
		{"anything", `true`, ``},
		{"nothing", `false`, `never`},
		{"not an object", `{"type":"string"}`, ``},
		{"required and optional in the schema's order",
			`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"number"}},"required":["z"]}`,
			`z: string, a?: number`},
		{"the example of the package",
			`{"type":"object","properties":{"path":{"type":"string"},"tail":{"type":"number"},"mode":{"enum":["r","w"],"default":"r"}},"required":["path"]}`,
			`path: string, tail?: number, mode?: "r" | "w" = "r"`},
		{"required with a default", `{"properties":{"a":{"type":"string","default":"x"},"b":{"default":null},"c":{"default":1}},"required":["a","b"]}`,
			`a?: string = "x", b?: unknown, c?: unknown = 1`},
		{"required but not described", `{"type":"object","required":["a","a","b"]}`, `a: unknown, b: unknown`},
		{"required but not described, others typed",
			`{"type":"object","required":["a"],"additionalProperties":{"type":"string"}}`, `a: string, [key: string]: string`},
		{"names that are no identifiers", params(`"x-y":{"type":"string"},"1a":{},"$a":{},"":{},"naïve":{}`),
			`"x-y"?: string, "1a"?: unknown, $a?: unknown, ""?: unknown, "naïve"?: unknown`},
		{"a key twice", params(`"a":{"type":"string"},"b":{},"a":{"type":"null"}`), `b?: unknown, a?: null`},
		{"closed", `{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `a?: unknown`},
		{"others typed", `{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"integer"}}`,
			`a?: unknown, [key: string]: integer`},
		{"only others", `{"type":"object","additionalProperties":{"type":"integer"}}`, `[key: string]: integer`},
		{"boolean schemas", params(`"a":true,"b":false`), `a?: unknown`},
		{"required and impossible", `{"properties":{"b":false},"required":["b"]}`, `b: never`},
		{"without a type", `{"properties":{"a":{"type":"string"}}}`, `a?: string`},
	})
}

func TestSome(t *testing.T) {
	const issue = `{"properties":{"title":{"type":"string"},"labels":{"type":"array","items":{"type":"string"}},"by":{"$ref":"#/$defs/User"},"to":{"$ref":"#/$defs/User"},"n":{"type":"integer"}},
		"required":["title"],"$defs":{"User":{"type":"object","properties":{"name":{"type":"string"}}}}}`
	for _, c := range []struct {
		name, schema string
		names        []string
		want         string
	}{
		{"in the schema's order", issue, []string{"labels", "title", "labels"}, `title: string, labels?: string[], …`},
		{"a definition that it uses", issue, []string{"to"}, `to?: {name?: string}, …`},
		{"all", params(`"a":{"type":"string"},"b":{}`), []string{"a", "b"}, `a?: string, b?: unknown`},
		{"others typed", `{"properties":{"a":{}},"additionalProperties":{"type":"integer"}}`, []string{"a"}, `a?: unknown, …`},
		{"an unknown name", params(`"a":{"type":"string"},"b":{}`), []string{"a", "c"}, `a?: string, b?: unknown`},
		{"by reference", `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{},"b":{}}}}}`, []string{"b"}, `b?: unknown, …`},
		{"no parameters", `{}`, []string{"a"}, ``},
		{"not a schema", `{"type"`, []string{"a"}, `…`},
	} {
		if got := signature.Some(schema.New([]byte(c.schema)), c.names); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestOfTypes(t *testing.T) {
	runCases(t, []signatureCase{
		{"words", params(`"a":{"type":"string"},"b":{"type":"number"},"c":{"type":"integer"},"d":{"type":"boolean"},"e":{"type":"null"},"f":{"type":"object"},"g":{"type":"array"},"h":{}`),
			`a?: string, b?: number, c?: integer, d?: boolean, e?: null, f?: object, g?: unknown[], h?: unknown`},
		{"a type that does not exist", params(`"a":{"type":"date"},"b":{"type":["string","any"]},"c":{"type":7}`),
			`a?: unknown, b?: unknown, c?: unknown`},
		{"several types", params(`"a":{"type":["string","number"]}`), `a?: string | number`},
		{"nullable", params(`"a":{"type":["null","string"]},"b":{"type":"string","nullable":true},"c":{"anyOf":[{"type":"null"},{"type":"integer"}]},"d":{"nullable":true}`),
			`a?: string | null, b?: string | null, c?: integer | null, d?: unknown`},
		{"anyOf and oneOf", params(`"a":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},"b":{"oneOf":[{"type":"boolean"},{"const":"auto"}]}`),
			`a?: string | string[], b?: boolean | "auto"`},
		{"a union once", params(`"a":{"anyOf":[{"type":"string"},{"type":"string"},{"type":"object","properties":{"x":{}}},{"type":"object","properties":{"x":{}}}]}`),
			`a?: string | {x?: unknown}`},
		{"anyOf with anything", params(`"a":{"anyOf":[{"type":"string"},{}]}`), `a?: unknown`},
		{"anyOf with nothing", params(`"a":{"anyOf":[{"not":{}},{"type":"string"}]},"b":{"not":{}},"c":{"anyOf":[]}`), `a?: string, c?: unknown`},
		{"enum", params(`"a":{"type":"string","enum":["x","y \"z\""]},"b":{"enum":[1,2.50,-3e2,true,null,"s"]}`),
			`a?: "x" | "y \"z\"", b?: 1 | 2.50 | -3e2 | true | "s" | null`},
		{"enum beside a type", params(`"a":{"type":"string","enum":["x",1,null]},"b":{"type":"integer","enum":["1","2"]},"c":{"type":"integer","enum":[1,"2"]}`),
			`a?: "x", b?: "1" | "2", c?: 1`},
		{"enum that is none", params(`"a":{"type":"string","enum":[]},"b":{"enum":"x"}`), `a?: string, b?: unknown`},
		{"enum of values", params(`"a":{"enum":[{"x":1,"y":[true,"s"]},[]]},"b":{"const":{"x":{"y":{"z":{}}},"l":[[[[1]]]]}}`),
			`a?: {x: 1, y: (true | "s")[]} | never[], b?: {x: {y: {z: object}}, l: unknown[][][]}`},
		{"const", params(`"a":{"const":"v1"},"b":{"const":null},"c":{"const":0}`), `a?: "v1", b?: null, c?: 0`},
		{"arrays", params(`"a":{"type":"array","items":{"type":"string"}},"b":{"type":"array","items":{"type":["string","null"]}},"c":{"items":{"items":{"enum":["x","y"]}}},"d":{"type":"array","items":true},"e":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}}`),
			`a?: string[], b?: (string | null)[], c?: ("x" | "y")[][], d?: unknown[], e?: {id: integer}[]`},
		{"tuples", params(`"a":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"items":false,"minItems":2},"b":{"type":"array","items":[{"type":"string"},{"type":["number","null"]}],"minItems":1,"maxItems":2},"c":{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"integer"},"minItems":1},"d":{"prefixItems":[{"type":"string"}]},"e":{"items":[{"type":"string"}],"additionalItems":{"enum":[1,2]},"minItems":"x"},"f":{"type":"array","maxItems":-1}`),
			`a?: (string | number)[] /*>=2 items*/, b?: (string | number | null)[] /*1..2 items*/, c?: (string | integer)[], d?: unknown[], e?: (string | 1 | 2)[], f?: unknown[] /*<=-1 items*/`},
		{"nested objects", params(`"a":{"type":"object","properties":{"id":{"type":"number"},"name":{"type":"string","default":"x"}},"required":["id"]},"b":{"type":"object","additionalProperties":false}`),
			`a?: {id: number, name?: string = "x"}, b?: {}`},
		{"records", params(`"a":{"type":"object","additionalProperties":{"type":"string"}},"b":{"type":"object","additionalProperties":true},"c":{"type":"object","additionalProperties":{}},"d":{"properties":{"x":{"type":"string"}},"additionalProperties":{"type":"number"}}`),
			`a?: Record<string, string>, b?: object, c?: object, d?: {x?: string, [key: string]: number}`},
		{"patterns of keys", params(`"a":{"type":"object","patternProperties":{"^x":{"type":"string"},"^y":{"type":"number"}},"additionalProperties":false},"b":{"type":"object","patternProperties":{"^x":{"type":"string"}}}`),
			`a?: Record<string, string | number>, b?: object`},
		{"what only restricts", params(`"a":{"type":"string","not":{"const":"x"},"if":{"minLength":3},"then":{"pattern":"x"}},"b":{"type":"object","properties":{"x":{}},"dependentSchemas":{"x":{"required":["y"]}},"propertyNames":{"pattern":"x"},"minProperties":1}`),
			`a?: string, b?: {x?: unknown}`},
	})
}

func TestOfNotesAndDefaults(t *testing.T) {
	runCases(t, []signatureCase{
		{"bounds of numbers", params(`"a":{"type":"integer","minimum":1,"maximum":100,"default":20},"b":{"type":"number","minimum":0},"c":{"type":"number","maximum":1.5},"d":{"type":"number","exclusiveMinimum":0,"maximum":1},"e":{"type":"integer","minimum":5,"maximum":5}`),
			`a?: integer /*1..100*/ = 20, b?: number /*>=0*/, c?: number /*<=1.5*/, d?: number /*>0, <=1*/, e?: integer /*5*/`},
		{"exclusive bounds of draft-04", params(`"a":{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}`),
			`a?: number /*>0, <=9*/`},
		{"bounds of machine types", params(`"a":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991},"b":{"type":"integer","minimum":0,"maximum":2147483647}`),
			`a?: integer, b?: integer /*>=0*/`},
		{"lengths", params(`"a":{"type":"string","minLength":2,"maxLength":8},"b":{"type":"string","minLength":1},"c":{"type":"string","minLength":0,"maxLength":9},"d":{"type":"array","minItems":2,"items":{"type":"string"}},"e":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","format":"uuid"}}`),
			`a?: string /*2..8 chars*/, b?: string, c?: string /*<=9 chars*/, d?: string[] /*>=2 items*/, e?: string /*uuid*/[] /*1..3 items*/`},
		{"format before pattern", params(`"a":{"type":"string","format":"date-time","pattern":"^x"},"b":{"type":"string","pattern":"^[a-z]+$","maxLength":5},"c":{"type":"string","pattern":"^aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa$"}`),
			`a?: string /*date-time*/, b?: string /*^[a-z]+$, <=5 chars*/, c?: string`},
		{"patterns cannot end their comment", params(`"a":{"type":"string","pattern":"a*/ b"},"b":{"type":"string","pattern":"^a*"},"c":{"type":"string","format":"*/"}`),
			`a?: string, b?: string /*^a**/, c?: string`},
		{"only of their type", params(`"a":{"type":["string","integer","null"],"minimum":1,"maxLength":5}`), `a?: string /*<=5 chars*/ | integer /*>=1*/ | null`},
		{"bounds that are none", params(`"a":{"type":"integer","minimum":"1","maximum":null},"b":{"type":"string","format":"","pattern":[]}`), `a?: integer, b?: string`},
		{"defaults", params(`"a":{"type":"string","default":"x\ny"},"b":{"default":[1, {"a": "b" }]},"c":{"default":null},"d":{"default":{}},"e":{"default":[ ]},"f":{"default":1.0},"g":{"default":"0123456789012345678901234567890123456789"}`),
			`a?: string = "x\u000ay", b?: unknown = [1,{"a":"b"}], c?: unknown, d?: unknown = {}, e?: unknown = [], f?: unknown = 1.0, g?: unknown`},
	})
}

func TestOfCombined(t *testing.T) {
	runCases(t, []signatureCase{
		{"allOf merges objects",
			`{"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"properties":{"b":{"type":"number"},"a":{"minLength":2,"type":"string"}},"required":["a"]},{"required":["b"]}]}`,
			`a: string /*>=2 chars*/, b: number`},
		{"allOf of words", params(`"a":{"allOf":[{"type":"number","minimum":1},{"type":"integer","maximum":9}]},"b":{"type":"string","allOf":[{"enum":["x","y"]}]},"c":{"allOf":[{"type":"string"},{"type":"number"}]},"d":{"allOf":[{"const":1},{"const":1.0}]}`),
			`a?: integer /*>=1, <=9*/, b?: "x" | "y", d?: 1`},
		{"allOf of arrays", params(`"a":{"type":"array","maxItems":3,"allOf":[{"items":{"type":"string"}}]},"b":{"allOf":[{"type":"array","prefixItems":[{}]},{"type":"array"}]}`),
			`a?: string[] /*<=3 items*/, b?: unknown[]`},
		{"allOf of records", params(`"a":{"allOf":[{"type":"object","additionalProperties":{"type":"number"}},{"type":"object","additionalProperties":{"type":"integer"},"properties":{"x":{"type":"integer"}}}]}`),
			`a?: {x?: integer, [key: string]: integer}`},
		{"allOf of unions", params(`"a":{"allOf":[{"enum":["x","y"]},{"enum":["y","z"]}]},"b":{"type":["string","null"],"anyOf":[{"const":"x"},{"type":"null"},{"type":"number"}]}`),
			`a?: "x" | "y", b?: "x" | null`},
		{"alternatives are merged with what they have in common", params(`"a":{"type":"object","properties":{"id":{"type":"string"}},"anyOf":[{"properties":{"x":{"type":"string"}},"required":["x"]},{"properties":{"y":{"type":"string"}},"required":["y"]}],"oneOf":[{"properties":{"z":{"const":1}}},{"properties":{"z":{"const":2}}}]}`),
			`a?: {id?: string, x: string, z?: 1} | {id?: string, x: string, z?: 2} | {id?: string, y: string, z?: 1} | {id?: string, y: string, z?: 2}`},
		{"alternatives at the root", `{"type":"object","oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"number"}},"required":["b"]}]}`,
			`{a: string} | {b: number}`},
		{"alternatives that only require", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"}},"anyOf":[{"required":["a"]},{"required":["b"]},{}]}`,
			`a?: string, b?: number`},
		{"alternatives that require others", `{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{a: string} | {a?: string, b: unknown}`},
		{"draft-07 ignores what is beside a $ref", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#/definitions/A","type":"number"}},"definitions":{"A":{"type":"string"}}}`,
			`a?: string`},
		{"2020-12 does not", `{"properties":{"a":{"$ref":"#/$defs/A","properties":{"y":{"type":"string"}}}},"$defs":{"A":{"type":"object","properties":{"x":{"type":"string"}}}}}`,
			`a?: {x?: string, y?: string}`},
	})
}

func TestOfReferences(t *testing.T) {
	const filter = `"Filter":{"type":"object","properties":{"field":{"type":"string"},"value":{}},"required":["field","value"]}`
	runCases(t, []signatureCase{
		{"used once", `{"properties":{"a":{"$ref":"#/$defs/Filter"}},"$defs":{` + filter + `}}`, `a?: {field: string, value: unknown}`},
		{"used twice", `{"properties":{"filter":{"$ref":"#/$defs/Filter"},"other":{"$ref":"#/$defs/Filter"}},"required":["filter"],"$defs":{` + filter + `}}`,
			`filter: {field: string, value: unknown}, other?: {field: string, value: unknown}`},
		{"short ones", `{"properties":{"a":{"$ref":"#/definitions/Id"},"b":{"type":"array","items":{"$ref":"#/definitions/Id"}},"c":{"$ref":"#/definitions/Or"},"d":{"items":{"$ref":"#/definitions/Or"}}},"definitions":{"Id":{"type":"string"},"Or":{"enum":[1,2]}}}`,
			`a?: string, b?: string[], c?: 1 | 2, d?: (1 | 2)[]`},
		{"recursive", `{"properties":{"tree":{"$ref":"#/$defs/Node"}},"$defs":{"Node":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/$defs/Node"}}}}}}`,
			`tree?: {children?: {…}[]}`},
		{"mutually recursive", `{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","properties":{"b":{"$ref":"#/$defs/B"}}},"B":{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}}}}}`,
			`a?: {b?: {a?: {…}}}`},
		{"recursive through the root", `{"type":"object","properties":{"value":{"type":"string"},"next":{"$ref":"#"}},"required":["value"]}`,
			`value: string, next?: {value: string, next?: {…}}`},
		{"the root is a reference", `{"$ref":"#/definitions/T","definitions":{"T":{"type":"object","properties":{"x":{"type":"string"},"t":{"$ref":"#/definitions/T"}}}}}`,
			`x?: string, t?: {…}`},
		{"of a place", `{"properties":{"start":{"type":"object","properties":{"at":{"type":"string"}}},"end":{"$ref":"#/properties/start"}}}`,
			`start?: {at?: string}, end?: {at?: string}`},
		{"of an element", `{"properties":{"a-list":{"type":"array","items":{"type":"object","properties":{"at":{"type":"string"}}}},"end":{"$ref":"#/properties/a-list/items"}}}`,
			`"a-list"?: {at?: string}[], end?: {at?: string}`},
		{"recursive, perhaps not an object", `{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/B"}},"$defs":{"A":{"anyOf":[{"type":"string"},{"type":"array","items":{"$ref":"#/$defs/A"}}]},"B":{"type":"object","nullable":true,"properties":{"b":{"$ref":"#/$defs/B"}}}}}`,
			`a?: string | unknown[], b?: {b?: unknown} | null`},
		{"pointers", `{"properties":{"a":{"$ref":"#/$defs/a~1b~0c%20d"},"b":{"$ref":"#/x-list/1"},"c":{"$ref":"#/x-list/9"},"d":{"$ref":"#/%zz"}},"$defs":{"a/b~c d":{"type":"string"}},"x-list":[{},{"const":5}]}`,
			`a?: string, b?: 5, c?: unknown, d?: unknown`},
		{"anchor, used once", `{"properties":{"a":{"$ref":"#f"}},"$defs":{"Filter":{"$anchor":"f","type":"object","properties":{"field":{"type":"string"}}}}}`, `a?: {field?: string}`},
		{"anchor, used twice", `{"properties":{"a":{"$ref":"#f"},"b":{"$ref":"#/$defs/Filter"}},"$defs":{"Filter":{"$anchor":"f","type":"object","properties":{"field":{"type":"string"}}}}}`,
			`a?: {field?: string}, b?: {field?: string}`},
		{"anchor of a place", `{"properties":{"start":{"$anchor":"s","type":"object","properties":{"at":{"type":"string"}}},"end":{"$ref":"#s"}}}`,
			`start?: {at?: string}, end?: {at?: string}`},
		{"anchor of the root", `{"$anchor":"top","type":"object","properties":{"next":{"$ref":"#top"}}}`, `next?: {next?: {…}}`},
		{"dynamic anchor", `{"$dynamicAnchor":"top","type":"object","properties":{"next":{"$dynamicRef":"#top"}}}`, `next?: {next?: {…}}`},
		{"an anchor twice", `{"properties":{"a":{"$ref":"#f"}},"$defs":{"A":{"$anchor":"f","type":"string"},"B":{"$anchor":"f","type":"string"}}}`, `a?: unknown`},
		{"anchor in draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#f"}},"definitions":{"A":{"$anchor":"f","type":"string"}}}`, `a?: unknown`},
		{"dynamic in 2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"a":{"$dynamicRef":"#f"},"b":{"$ref":"#f"}},"$defs":{"A":{"$dynamicAnchor":"f","type":"string"}}}`,
			`a?: unknown, b?: unknown`},
		{"anchor of another resource", `{"properties":{"a":{"$ref":"#f"}},"$defs":{"A":{"$id":"https://example.com/a","$anchor":"f","type":"string"}}}`, `a?: unknown`},
		{"not local", params(`"a":{"$ref":"https://example.com/s"},"b":{"$ref":"#anchor"},"c":{"$ref":"#/$defs/none"},"d":{"$ref":7}`),
			`a?: unknown, b?: unknown, c?: unknown, d?: unknown`},
		{"another base", `{"properties":{"a":{"$id":"https://example.com/a","$ref":"#/$defs/A"}},"$defs":{"A":{"type":"string"}}}`, `a?: unknown`},
		{"a name for itself", `{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/B"},"c":{"$ref":"#/$defs/C"}},"$defs":{"A":{"$ref":"#/$defs/A"},"B":{"$ref":"#/$defs/C"},"C":{"$ref":"#/$defs/B"}}}`,
			`a?: unknown, b?: unknown, c?: unknown`},
		{"a name for another", `{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/A"}},"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"type":"object","properties":{"x":{}}}}}`,
			`a?: {x?: unknown}, b?: {x?: unknown}`},
		{"extended", `{"properties":{"a":{"allOf":[{"$ref":"#/$defs/Base"},{"properties":{"x":{"type":"string"}}}]},"b":{"$ref":"#/$defs/Base"}},"$defs":{"Base":{"type":"object","properties":{"id":{"type":"string"}}}}}`,
			`a?: {id?: string, x?: string}, b?: {id?: string}`},
		{"extended in place", `{"properties":{"a":{"$ref":"#/$defs/Base","properties":{"x":{"type":"string"}}},"b":{"$ref":"#/$defs/Base"}},"$defs":{"Base":{"type":"object","properties":{"id":{"type":"string"}}}}}`,
			`a?: {id?: string, x?: string}, b?: {id?: string}`},
	})
}

func TestRequired(t *testing.T) {
	for _, c := range []signatureCase{
		{"none", `{"type":"object"}`, ``},
		{"no schema", ``, ``},
		{"required and optional", `{"properties":{"a":{},"path":{}},"required":["path"]}`, `path, …`},
		{"only required", `{"properties":{"a-b":{},"path":{}},"required":["path","a-b"]}`, `"a-b", path`},
		{"only optional", `{"properties":{"a":{}}}`, `…`},
		{"others typed", `{"properties":{"a":{}},"required":["a"],"additionalProperties":{"type":"string"}}`, `a, …`},
		{"alternatives", `{"oneOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}`, `…`},
		{"malformed", `{`, `…`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := signature.Required(schema.New([]byte(c.schema))); got != c.want {
				t.Errorf("Required(%s)\n got %s\nwant %s", c.schema, got, c.want)
			}
		})
	}
}

func TestTyped(t *testing.T) {
	for _, c := range []signatureCase{
		{"none", `{"type":"object"}`, ``},
		{"required and optional", `{"properties":{"a":{},"path":{"type":"string","minLength":1}},"required":["path"]}`, `path: string, …`},
		{"only required", `{"properties":{"n":{"enum":[1,2]},"path":{}},"required":["path","n"]}`, `n: 1 | 2, path: unknown`},
		{"only optional", `{"properties":{"a":{}}}`, `…`},
		{"others typed", `{"properties":{"a":{}},"required":["a"],"additionalProperties":{"type":"string"}}`, `a: unknown, …`},
		{"nested", `{"properties":{"a":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"string"}},"required":["x"]}},"required":["a"]}`, `a: {x: string, …}`},
		{"by reference", `{"properties":{"a":{"$ref":"#/$defs/T"},"b":{"$ref":"#/$defs/T"},"c":{"$ref":"#/$defs/U"},"d":{"$ref":"#/$defs/U"}},"required":["a","b"],"$defs":{"T":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"string"}},"required":["x"]},"U":{"type":"object","properties":{"z":{}}}}}`,
			`a: {x: string, …}, b: {x: string, …}, …`},
		{"malformed", `{`, `…`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := signature.Typed(schema.New([]byte(c.schema))); got != c.want {
				t.Errorf("Typed(%s)\n got %s\nwant %s", c.schema, got, c.want)
			}
		})
	}
}

func TestReturns(t *testing.T) {
	const page = `{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer","minimum":1},"title":{"type":"string"},"user":{"type":"object","properties":{"login":{"type":"string"}},"required":["login"]}},"required":["id"]}},"next":{"type":"string"}},"required":["items"]}`
	for _, c := range []struct {
		name, schema string
		limit        int
		want         string
	}{
		{"whole, without comments", page, 1000, `{items: {id: integer, title?: string, user?: {login: string}}[], next?: string}`},
		{"without nested details", page, 60, `{items: {id: integer, …}[], next?: string}`},
		{"without optional fields", page, 40, `{items: {id: integer, …}[], …}`},
		{"without its fields", page, 25, `{items: {…}[], …}`},
		{"nothing", page, 10, `{…}`},
		{"no object", `{"type":"array","items":{"type":"string"}}`, 1000, `string[]`},
		{"a word", `{"type":"string"}`, 1000, `string`},
		{"recursive", `{"type":"object","properties":{"next":{"$ref":"#"},"r":{"$ref":"#/$defs/Result"}},"$defs":{"Result":{"type":"object","properties":{"r":{"$ref":"#/$defs/Result"}}}}}`, 1000,
			`{next?: {next?: {…}, r?: {r?: {…}}}, r?: {r?: {…}}}`},
		{"any object", `{"type":"object"}`, 1000, ``},
		{"anything", `{}`, 1000, ``},
		{"malformed", `{`, 1000, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := signature.Returns(schema.New([]byte(c.schema)), c.limit); got != c.want {
				t.Errorf("Returns(%s, %d)\n got %s\nwant %s", c.schema, c.limit, got, c.want)
			}
		})
	}
}
