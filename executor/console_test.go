package executor

import (
	"fmt"
	"strings"
	"testing"

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
	want := Reading{
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

// TestConsoleSearch: the console finds what the tool search finds, without mcpx's own tools.
func TestConsoleSearch(t *testing.T) {
	b := start(t, nil, newUpstream(t, "issues", toolsFile(t, `{"name":"delete_invoice","description":"Remove an invoice for good."}`)...))
	if _, err := b.registry.For(nil).Ready(t.Context(), "issues"); err != nil {
		t.Fatal(err)
	}
	const query = "get rid of a bill"
	hits := b.Search(nil, query, 10)
	if len(hits) == 0 || hits[0] != (Hit{"issues", "delete_invoice"}) {
		t.Errorf("found %v", hits)
	}
	if text := b.exec(t, searchFor(`{"query":"`+query+`"}`)); !strings.HasPrefix(text, "issues: delete_invoice(") {
		t.Errorf("the tool search finds %s", text)
	}
	for _, hit := range b.Search(nil, "configuration secrets", 10) {
		if hit.Server == Builtin {
			t.Errorf("found %v", hit)
		}
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
