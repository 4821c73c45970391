package executor

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestValidationErrors(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a", toolsFile(t,
		`{"name":"wide","inputSchema":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"},"d":{"type":"integer"},"e":{"type":"integer"},"f":{"type":"integer"},"g":{"type":"integer"}},"required":["f","g"]}}`,
		`{"name":"draft4","inputSchema":{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"count":{"type":"integer"},"query":{"type":"string"}},"required":["query"]}}`,
		`{"name":"closed","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"tail":{"type":"integer"}},"additionalProperties":false}}`,
		`{"name":"forms","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"url":{"type":"string"}},"anyOf":[{"required":["path"]},{"required":["url"]}]}}`,
		`{"name":"na\nme","inputSchema":{"type":"object","required":["x\ny"],"properties":{"x\ny":{"type":"string"}}}}`)...))
	for _, row := range []struct{ name, tool, arguments, want string }{
		{"required", "echo", `{}`, "arguments.text: required\necho(text: string, …)"},
		{"a wrong type", "echo", `{"text":"a","times":"three"}`, `arguments.times: expected integer, got string "three"` + "\necho(times?: integer /*>=1*/, …)"},
		{"both", "echo", `{"times":"three"}`, "arguments.text: required\narguments.times: expected integer, got string \"three\"\necho(text: string, times?: integer /*>=1*/)"},
		{"of an older draft", "draft4", `{"count":"three"}`, "arguments.query: required\narguments.count: expected integer, got string \"three\"\ndraft4(count?: integer, query: string)"},
		{"five at most", "wide", `{"a":"","b":"","c":"","d":"","e":"","f":1}`, strings.Join([]string{
			"arguments.g: required",
			`arguments.a: expected integer, got string ""`,
			`arguments.b: expected integer, got string ""`,
			`arguments.c: expected integer, got string ""`,
			`arguments.d: expected integer, got string ""`,
			"wide(a?: integer, b?: integer, c?: integer, d?: integer, g: integer, …)",
		}, "\n")},
		{"inside", "nested", `{"filter":{"tags":[true]}}`, "arguments.filter.tags[0]: expected string, got boolean true\nnested(filter: {tags?: string[]}, …)"},
		{"hostile values", "echo", `{"text":["\n\u001b[2J"]}`, `arguments.text: expected string, got array ["\n\u001b[2J"]` + "\necho(text: string, …)"},
		{"an unknown parameter", "closed", `{"paht":1}`, "arguments.paht: unknown property; did you mean \"path\"?\nclosed(path?: string, …)"},
		{"an unknown parameter like no other", "closed", `{"recursive":1}`, "arguments.recursive: unknown property; known: path, tail\nclosed(path?: string, tail?: integer)"},
		{"no single parameter", "forms", `{}`, "arguments: expected one of 2 forms: (1) path: required (2) url: required\nforms(path?: string, url?: string)"},
		{"hostile names", "na\\nme", `{}`, `arguments["x\ny"]: required` + "\n" + `na\nme("x\u000ay": string)`},
	} {
		got := b.exec(t, fmt.Sprintf(`{"server_name":"a","tool_name":"%s","arguments":%s}`, row.tool, row.arguments))
		if got != "error: "+row.want {
			t.Errorf("%s:\n got %s\nwant error: %s", row.name, got, row.want)
		}
	}
}

// What cannot be judged is sent as it is, and the log says so once.
func TestUnjudgedSchemasAreNotEnforced(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a", toolsFile(t,
		`{"name":"remote","inputSchema":{"$ref":"https://example.com/x.json"}}`,
		`{"name":"loop","inputSchema":{"$ref":"#"}}`,
		`{"name":"text","inputSchema":"no schema"}`,
		`{"name":"null","inputSchema":null}`,
		`{"name":"absent"}`)...))
	var wg sync.WaitGroup
	for _, name := range []string{"remote", "loop", "text", "null", "absent"} {
		for range 5 {
			wg.Go(func() {
				want := name + ` {"any": "thing"}`
				if got := b.exec(t, `{"server_name":"a","tool_name":"`+name+`","arguments":{"any": "thing"}}`); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
	}
	wg.Wait()
	for name, want := range map[string]int{"remote": 1, "loop": 1, "text": 1, "null": 0, "absent": 0} {
		if got := b.log.count(fmt.Sprintf(`"tool":"%s","reason":`, name)); got != want {
			t.Errorf("the log speaks of %s %d times, want %d", name, got, want)
		}
	}
}

// TestCostlyArguments: if an argument is too costly to check, the others are still checked and
// repaired. The log says once that an argument was not checked.
func TestCostlyArguments(t *testing.T) {
	definitions := `"40":{"type":"integer"}`
	for i := range 40 {
		definitions += fmt.Sprintf(`,"%d":{"anyOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]}`, i, i+1, i+1)
	}
	b := start(t, nil, newUpstream(t, "a", toolsFile(t,
		`{"name":"plant","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"tree":{"$ref":"#/$defs/0"}},"$defs":{`+definitions+`}}}`)...))
	for _, row := range []struct {
		arguments, want string
		logged          int
	}{
		{`{"n":"two","tree":"oak"}`, `error: arguments.n: expected integer, got string "two"` + "\nplant(n?: integer, …)", 0},
		{`{"n":"2","tree":"oak"}`, `plant {"n":2,"tree":"oak"}`, 1},
		{`{"n":2,"tree":"oak"}`, `plant {"n":2,"tree":"oak"}`, 1},
	} {
		if got := b.exec(t, `{"server_name":"a","tool_name":"plant","arguments":`+row.arguments+`}`); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.arguments, got, row.want)
		}
		if got := b.log.count(`"tool":"plant","reason":"check: took too long"`); got != row.logged {
			t.Errorf("after %s, the log speaks of the tool %d times, want %d", row.arguments, got, row.logged)
		}
	}
}

func TestValidatorsAreCompiledOnce(t *testing.T) {
	u := tool(t, `{"name":"a","inputSchema":{"$ref":"https://example.com"}}`)
	var mu sync.Mutex
	seen := map[*validator]bool{}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			s := validatorOf(u)
			mu.Lock()
			defer mu.Unlock()
			seen[s] = true
		})
	}
	wg.Wait()
	if len(seen) != 1 {
		t.Errorf("%d schemas, want one", len(seen))
	}
}
