package listing

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// tool returns a tool with that definition.
func tool(t testing.TB, raw string) *lists.Tool {
	t.Helper()
	name, ok := rawjson.String(rawjson.Get([]byte(raw), "name"))
	if !ok || rawjson.Check([]byte(raw)) != nil {
		t.Fatalf("no tool: %s", raw)
	}
	return live.NewUpstream("a", []lists.Item{{Key: name, Raw: []byte(raw)}}).Tool(name)
}

// upstreamOf returns an upstream with these tools that is always ready.
func upstreamOf(name string, tools []*lists.Tool) *live.Upstream {
	items := make([]lists.Item, len(tools))
	for i, t := range tools {
		items[i] = lists.Item{Key: t.Name, Raw: t.Raw}
	}
	return live.NewUpstream(name, items)
}

func TestDescribe(t *testing.T) {
	for _, row := range []struct{ name, raw, want string }{
		{"small", `{"name":"a"}`, `{"name":"a"}`},
		{"minified", "{ \"name\" : \"a\" ,\n\t\"inputSchema\": { \"type\" : \"object\" } }", `{"name":"a","inputSchema":{"type":"object"}}`},
		{"icons and _meta are for hosts", `{"_meta":{"x":1},"name":"a","icons":[{"src":"data:"}],"title":"A"}`, `{"name":"a","title":"A"}`},
		{"only at the top", `{"name":"a","inputSchema":{"properties":{"icons":{"_meta": 1}}}}`, `{"name":"a","inputSchema":{"properties":{"icons":{"_meta":1}}}}`},
		{
			"all else as it is",
			`{"name":"a","title":"é \u00e9 <b>&","description":"x  y\n","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"n":{"const":9007199254740993,"default":1.0,"minimum":1e-400}},"$defs":{"B":{},"A":{}}},"outputSchema":{"oneOf":[{},true]},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"},"x-unknown":[null,"  "],"Icons":1}`,
			`{"name":"a","title":"é \u00e9 <b>&","description":"x  y\n","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"n":{"const":9007199254740993,"default":1.0,"minimum":1e-400}},"$defs":{"B":{},"A":{}}},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"},"x-unknown":[null,"  "],"Icons":1}`,
		},
		{
			"the type of the results instead of their schema",
			`{"name":"a","outputSchema":{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}},"next":{"type":"string"}},"required":["items"]},"title":"A"}`,
			`{"name":"a","title":"A","returns":"{items: {id: integer}[], next?: string}"}`,
		},
		{"a schema that says nothing", `{"name":"a","outputSchema":{"type":"object"}}`, `{"name":"a"}`},
		{"no schema", `{"name":"a","outputSchema":7}`, `{"name":"a"}`},
		{"an own member", `{"name":"a","returns":[1]}`, `{"name":"a","returns":[1]}`},
		{"an own member beside a schema", `{"name":"a","returns":[1],"outputSchema":{"type":"string"}}`, `{"name":"a","returns":"string"}`},
	} {
		if got := string(definition(tool(t, row.raw), "")); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}

// However large an output schema is, the type of the results is short.
func TestReturnsAreBounded(t *testing.T) {
	var properties []string
	for i := range 200 {
		properties = append(properties, fmt.Sprintf(`"field_%d":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"count_%d":{"type":"integer"}},"required":["id"]}}`, i, i))
	}
	for _, row := range []struct{ name, schema, want string }{
		{"many fields", `{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`, "{field_0?: {"},
		{"many required fields", `{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":["field_0","field_199"]}`, "{field_0: {"},
		{"a long name", `{"type":"object","properties":{"` + strings.Repeat("n", 1000) + `":{}}}`, "{…}"},
		{"nested", strings.Repeat(`{"type":"object","properties":{"a":`, 50) + `{}` + strings.Repeat(`}}`, 50), "{a?: {"},
		{"digits", `{"enum":["` + strings.Repeat("1a2b", 2000) + `"]}`, "string"},
	} {
		got := returns(tool(t, `{"name":"a","outputSchema":`+row.schema+`}`))
		if cost := tokens.Count(got); cost > returnsTokens || !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: %d tokens, %q, want it to begin with %q", row.name, cost, got, row.want)
		}
	}
}

// TestAbsentToolsAreBounded: a long list of wrong names does not make a long answer.
func TestAbsentToolsAreBounded(t *testing.T) {
	u := upstreamOf("files", []*lists.Tool{tool(t, `{"name":"echo"}`)})
	lines := Find(u, strings.Repeat("ecko,", 10_000)+"echo").Absent
	if n := len(lines); n != maxAbsent+1 || lines[0] != `no tool "ecko"; did you mean "echo"?` || lines[n-1] != "… and further names" {
		t.Errorf("%d lines: %q", n, lines)
	}
}
