package validate

import (
	"context"
	"strings"
	"testing"

	"mcpx/internal/schema"
)

// TestAccepted holds the promise that a valid call is never refused, where a
// plain reading of the schema, or a library, would refuse it.
func TestAccepted(t *testing.T) {
	for _, c := range []struct{ name, schema, value string }{
		{"no schema", ``, `{"a":1}`},
		{"null", `null`, `{"a":1}`},
		{"true", `true`, `{"a":1}`},
		{"bare object", `{"type":"object"}`, `{"a":1}`},
		{"no type", `{"properties":{"a":{"type":"string"}}}`, `{}`},
		{"format", `{"format":"email"}`, `"nobody"`},
		{"format in oneOf", `{"oneOf":[{"type":"string","format":"date"},{"type":"string","format":"uri"}]}`, `"2024-01-01"`},
		{"format in not", `{"not":{"type":"string","format":"ipv4"}}`, `"no address"`},
		{"format in if", `{"if":{"format":"email"},"then":{"maxLength":3}}`, `"no address"`},
		{"format in maxContains", `{"contains":{"format":"email"},"maxContains":1}`, `["a","b"]`},
		{"format behind a reference", `{"not":{"$ref":"#/$defs/a"},"$defs":{"a":{"format":"ipv4"}}}`, `"no address"`},
		{"format in a recursive oneOf", `{"oneOf":[{"$ref":"#/$defs/a"},{"type":"object"}],"$defs":{"a":{"properties":{"next":{"$ref":"#/$defs/a"},"at":{"format":"date"}}}}}`, `{"at":"x","next":{}}`},
		{"look-ahead", `{"pattern":"^(?!\\.)[a-z]+$"}`, `"ABC"`},
		{"look-ahead in not", `{"not":{"pattern":"^(?!a)"}}`, `"abc"`},
		{"look-ahead in oneOf, beside allOf", `{"allOf":[true],"oneOf":[{"pattern":"^(?=a)"},{"pattern":"^b"}]}`, `"bc"`},
		{"look-ahead for a name", `{"patternProperties":{"^(?!x)":{"type":"integer"}},"additionalProperties":false}`, `{"abc":1}`},
		{"look-ahead for a name, unevaluated", `{"allOf":[{"patternProperties":{"^(?!x)":{}}}],"unevaluatedProperties":false}`, `{"abc":1}`},
		{"no-break space", `{"pattern":"^\\s$"}`, `"\u00a0"`},
		{"unicode escape", `{"pattern":"^[\\u00e0-\\u00ff]$"}`, `"é"`},
		{"long pattern", `{"pattern":"` + strings.Repeat("a", 3000) + `"}`, `"b"`},
		{"unknown type", `{"type":"int"}`, `1`},
		{"unknown type in a list", `{"type":["file","string"]}`, `1`},
		{"unknown type in not", `{"not":{"type":"file"}}`, `1`},
		{"type of schemas", `{"type":[{"type":"string"}]}`, `1`},
		{"empty enum", `{"enum":[]}`, `1`},
		{"null keywords", `{"description":null,"enum":null,"default":null,"additionalProperties":null,"type":null,"required":null,"properties":null,"pattern":null}`, `{"a":1}`},
		{"misshapen properties", `{"properties":["a"],"additionalProperties":false}`, `{"a":1}`},
		{"null property", `{"properties":{"a":null},"additionalProperties":false}`, `{"a":1}`},
		{"required as in draft 3", `{"properties":{"a":{"type":"string","required":true}}}`, `{}`},
		{"misshapen keywords", `{"minLength":"3","maxLength":-1,"minItems":1.5,"multipleOf":0,"minimum":"1","items":3,"allOf":[],"uniqueItems":1,"dependencies":[]}`, `[1,1]`},
		{"names that are none", `{"required":[1,"a",null],"dependentRequired":{"a":"b"}}`, `{"a":1}`},
		{"required with a default", `{"properties":{"a":{"type":"string","default":"x"},"b":{}},"required":["a","b"],"additionalProperties":false}`, `{"b":1}`},
		{"required with the default null", `{"properties":{"a":{"default":null}},"required":["a"]}`, `{}`},
		{"required with a default, deep", `{"items":{"properties":{"a":{"default":1}},"required":["a"]}}`, `[{}]`},
		{"required with a default in not", `{"not":{"properties":{"a":{"default":1}},"required":["a"]}}`, `{}`},
		{"required with a default in oneOf", `{"oneOf":[{"properties":{"a":{"default":1}},"required":["a"]},{"type":"object"}]}`, `{}`},
		{"required with a default in if", `{"if":{"properties":{"a":{"default":1}},"required":["a"]},"then":false}`, `{}`},
		{"nullable", `{"type":"string","nullable":true}`, `null`},
		{"nullable enum", `{"type":"string","enum":["a"],"nullable":true}`, `null`},
		{"nullable reference", `{"properties":{"a":{"$ref":"#/$defs/s","nullable":true}},"$defs":{"s":{"type":"string"}}}`, `{"a":null}`},
		{"multiple of 0.01", `{"items":{"multipleOf":0.01}}`, `[0.07,19.99,1.1,1e3,0.3,123456789.01]`},
		{"whole numbers", `{"items":{"type":"integer"}}`, `[1.0,1e3,-0.0,9007199254740993,123456789012345678901234567890,2.50e1]`},
		{"large numbers are unique", `{"uniqueItems":true}`, `[9007199254740992,9007199254740993]`},
		{"enum of numbers", `{"enum":[1.0,100]}`, `1e2`},
		{"enum twice", `{"enum":["a","a",1,1.0]}`, `1`},
		{"length of runes", `{"maxLength":3}`, `"日本語"`},
		{"exclusive without a limit", `{"exclusiveMaximum":true}`, `1`},
		{"exclusive false", `{"maximum":5,"exclusiveMaximum":false}`, `5`},
		{"inner id", `{"properties":{"a":{"$id":"http://example.com/x","type":"string"}}}`, `{"a":"x"}`},
		{"root id", `{"$id":"http://example.com/root.json","properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"}}}`, `{"a":"x"}`},
		{"anchors not used", `{"$anchor":"a","$dynamicAnchor":"b","type":"object"}`, `{}`},
		{"broken definition not used", `{"$defs":{"a":{"$ref":"http://example.com/"},"b":3,"c":{"$ref":"#/$defs/c"}}}`, `{}`},
		{"reference as an example", `{"default":{"$ref":"file:///etc/passwd"},"examples":[{"$ref":"#/nowhere"}],"enum":[{"$ref":"x"}]}`, `{"$ref":"x"}`},
		{"property called id", `{"properties":{"id":{"type":"string"},"$id":{"type":"string"}},"required":["id"]}`, `{"id":"a","$id":"b"}`},
		{"tuple without draft", `{"items":[{"type":"string"}],"additionalItems":false}`, `["a"]`},
		{"empty tuple", `{"items":[],"additionalItems":false}`, `["a"]`},
		{"additionalItems alone", `{"additionalItems":false}`, `["a"]`},
		{"deep recursion", `{"properties":{"a":{"$ref":"#"}}}`, strings.Repeat(`{"a":`, 200) + `{}` + strings.Repeat(`}`, 200)},
		{"a number too small to judge", `{"minimum":5}`, `1e-999999999`},
		{"a number too large to judge", `{"enum":[5]}`, `1e400`},
		{"the largest number", `{"maximum":1.7976931348623157e+308}`, `1.7976931348623157e308`},
	} {
		for dialect, declared := range map[string]string{"draft 7": `{` + draft7Declared + `,`, "2020-12": `{"$comment":"",`} {
			t.Run(c.name+"/"+dialect, func(t *testing.T) {
				schema := c.schema
				if strings.HasPrefix(schema, "{") {
					schema = declared + strings.TrimPrefix(schema, "{")
				}
				checkLines(t, schema, c.value, nil)
			})
		}
	}
}

// TestDraftsKnow has keywords that are not judged in a draft that does not know
// them.
func TestDraftsKnow(t *testing.T) {
	for _, c := range []struct{ name, schema, value string }{
		{"const in draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","const":1}`, `2`},
		{"if in draft 6", `{"$schema":"http://json-schema.org/draft-06/schema#","if":true,"then":false}`, `2`},
		{"prefixItems in draft 7", `{` + draft7Declared + `,"prefixItems":[false]}`, `[2]`},
		{"beside a reference in draft 7", `{` + draft7Declared + `,"properties":{"a":{"$ref":"#/definitions/s","maxLength":1}},"definitions":{"s":{"type":"string"}}}`, `{"a":"long"}`},
		{"additionalItems in 2020-12", `{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[true],"additionalItems":false}`, `[1,2]`},
		{"misshapen tuple", `{"prefixItems":"a","items":false}`, `[1]`},
	} {
		t.Run(c.name, func(t *testing.T) { checkLines(t, c.schema, c.value, nil) })
	}
}

// TestNotJSON: arguments that are not one JSON value are refused under every schema.
func TestNotJSON(t *testing.T) {
	s := newFor(`{}`)
	if verdict := s.Check(context.Background(), []byte(` {"a":[12345678901234567890]} `)); verdict.Problems != nil || verdict.Unchecked != "" {
		t.Errorf("a long number: %v", verdict)
	}
	for _, bad := range []string{``, `{}{}`, `{} x`, `{"a"}`, strings.Repeat("[", 257) + strings.Repeat("]", 257)} {
		if verdict := s.Check(context.Background(), []byte(bad)); len(verdict.Problems) != 1 {
			t.Errorf("%.20q: %v", bad, verdict)
		}
	}
}

// TestUnchecked has arguments that are not judged under any schema.
func TestUnchecked(t *testing.T) {
	s := newFor(`{"type":"string"}`)
	for value, want := range map[string]string{
		`1e400`:      "check: a number out of range",
		`["\ud800"]`: "check: half of a surrogate pair",
		`[` + strings.Repeat(`1,`, maxArgumentsNodes) + `1]`: "check: too many values",
	} {
		if verdict := s.Check(context.Background(), []byte(value)); verdict.Unchecked != want || verdict.Problems != nil {
			t.Errorf("%.20s: %v", value, verdict)
		}
	}
	if s.Check(context.Background(), []byte("null")).Problems == nil {
		t.Error("null is taken for a string")
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		ecma, want string // empty: not judged
	}{
		{`^[a-z]+$`, `^[a-z]+$`},
		{`\d+\.\d\/`, `\d+\.\d\/`},
		{`\u00e9`, `\x{e9}`},
		{`\u{1F600}`, `\x{1f600}`},
		{`[\s,]`, `[` + moreSpace + `,]`},
		{`^\S`, `^[^` + moreSpace + `]`},
		{`[\s\S]`, `[` + moreSpace + `\S]`},
		{`[^a\S]`, ``},
		{`(?<year>\d{4})`, `(?<year>\d{4})`},
		{`(?i)abc`, `(?i)abc`},
		{`(?<id>é)`, `(?<id>é)`},
		{`(?i)\p{L}`, ``},
		{`a(?si:[\u0041-\u{1e942}])`, ``},
		{`(?i)[a-é]`, ``},
		{`\p{L}\x41`, `\p{L}\x41`},
		{`[a\]b]\[`, `[a\]b]\[`},
		{`日本`, `日本`},
		{`(?=a)`, ``},
		{`(a)\1`, ``},
		{`\k<a>`, ``},
		{`\ud83d\ude00`, ``},
		{`\A\z`, ``},
		{`\Q.\E`, ``},
		{`\x{41}`, ``},
		{`\cA`, ``},
		{`[[:alpha:]]`, ``},
		{`[]`, ``},
		{`[^]`, ``},
		{`[`, ``},
		{`a{2000}`, ``},
		{`\`, ``},
		{``, ``},
	} {
		got := ""
		if p, ok := newReducer(schema.New(nil)).pattern(c.ecma); ok {
			got = p.String()
		}
		if got != c.want {
			t.Errorf("%s: %q", c.ecma, got)
		}
	}
}
