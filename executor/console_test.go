package executor

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/executor/listing"
	"mcpx/internal/tokens"
	"mcpx/registry/lists"
)

// TestReading: the console shows the line and the definition that an agent gets, with their
// exact costs. A listing that is too long has no line.
func TestReading(t *testing.T) {
	echo := tool(t, `{"name":"echo","description":"Say it again. Twice.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},"_meta":{"x":1}}`)
	var many []*lists.Tool
	for i := range 3000 {
		many = append(many, tool(t, fmt.Sprintf(`{"name":"tool_number_%d"}`, i)))
	}
	e := idle(parse(t, nil, newUpstream(t, "one")))
	r := e.Reading(nil, upstreamOf("one", []*lists.Tool{echo}), echo)
	want := listing.Reading{
		Tokens: tokens.CountBytes(echo.Raw),
		Line:   "echo(text: string): Say it again", LineTokens: tokens.Count("echo(text: string): Say it again"),
		Inspect: `{"name":"echo","description":"Say it again. Twice.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}`,
	}
	want.InspectTokens = tokens.Count(want.Inspect)
	if r != want {
		t.Errorf("got %+v\nwant %+v", r, want)
	}
	if r := e.Reading(nil, upstreamOf("many", many), many[2999]); r.Line != "" || r.Inspect == "" {
		t.Errorf("of a long listing: %+v", r)
	}
}

// TestPreview: a preview counts texts only, and selects as exec does.
func TestPreview(t *testing.T) {
	e := idle(parse(t, nil, newUpstream(t, "one")))
	const rows = `{"content":[{"type":"text","text":"{\"rows\":[{\"id\":1,\"b\":2},{\"id\":3,\"b\":4}]}"},{"type":"image","data":"AAAAAAAAAAAAAAAAAAAAAAAA","mimeType":"image/png"}]}`
	for _, v := range []struct {
		name, fields, text string
		selected           bool
	}{
		{"no select", "", "", false},
		{"fields", "id", `[{"id":1},{"id":3}]` + "\n", true},
		{"rows", "id where b = 4", `[{"id":3}]` + "\n", true},
	} {
		p, err := e.Preview(t.Context(), []byte(rows), v.fields)
		if err != nil || p.Tokens != tokens.Count(`{"rows":[{"id":1,"b":2},{"id":3,"b":4}]}`) || !strings.HasPrefix(p.Text, v.text) || v.selected != (p.Selected > 0) {
			t.Errorf("%s: %+v, %v", v.name, p, err)
		}
	}
	if _, err := e.Preview(t.Context(), []byte(rows), "id where"); err == nil {
		t.Error("a wrong select is accepted")
	}
}
