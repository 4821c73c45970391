package executor

import (
	"cmp"
	"testing"

	"mcpx/executor/results"
)

// TestNotes: exec notes what seems wrong in arguments that it sends, and flat mode notes
// nothing.
func TestNotes(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a", toolsFile(t,
		`{"name":"plan","inputSchema":{"type":"object","properties":{"title":{"type":"string"},"due":{"type":"string","format":"date"},"tags":{"type":"array","items":{"type":"string","format":"uuid"}}}}}`)...))
	b.registry.Attach(client("tester"))
	for _, row := range []struct{ name, arguments, sent, note string }{
		{"nothing", `{"title":"a","due":"2024-01-01"}`, "", ""},
		{"a format", `{"due":"soon"}`, "", `note: arguments.due: expected date (YYYY-MM-DD), got "soon"; sent as it is`},
		{"a name", `{"titel":"a"}`, "", `note: arguments.titel: unknown property, sent as it is; did you mean "title"?`},
		{"repaired arguments", `{"title":"a","tags":"[\"x\"]"}`, `{"title":"a","tags":["x"]}`, `note: arguments.tags[0]: expected uuid (8-4-4-4-12 hex digits), got "x"; sent as it is`},
		{"five at most", `{"tags":["1","2","3","4","5","6"]}`, "", `note: arguments.tags[0]: expected uuid (8-4-4-4-12 hex digits), got "1"; sent as it is
note: arguments.tags[1]: expected uuid (8-4-4-4-12 hex digits), got "2"; sent as it is
note: arguments.tags[2]: expected uuid (8-4-4-4-12 hex digits), got "3"; sent as it is
note: arguments.tags[3]: expected uuid (8-4-4-4-12 hex digits), got "4"; sent as it is
note: arguments.tags[4]: expected uuid (8-4-4-4-12 hex digits), got "5"; sent as it is`},
	} {
		call := ParseExec([]byte(`{"server_name":"a","tool_name":"plan","arguments":` + row.arguments + `}`))
		got, err := b.Call(t.Context(), call)
		plain := b.relay(t, "tools/call", `{"name":"a__plan","arguments":`+row.arguments+`}`)
		want := []byte(plain)
		if row.note != "" {
			want = results.AppendText(want, row.note)
		}
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %v\n got %s\nwant %s", row.name, err, got, want)
		}
		if sent := `plan ` + cmp.Or(row.sent, row.arguments); textOf(t, []byte(plain)) != sent {
			t.Errorf("%s, flat:\n got %s\nwant %s", row.name, plain, sent)
		}
	}
}
