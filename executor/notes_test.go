package executor

import (
	"cmp"
	"testing"
)

func TestWithNote(t *testing.T) {
	const block = `{"type":"text","text":"a \"b\""}`
	for _, row := range []struct{ name, result, want string }{
		{"after the last block", `{"content":[{"type":"text","text":"x"}],"isError":false}`, `{"content":[{"type":"text","text":"x"},` + block + `],"isError":false}`},
		{"into an empty content", `{"content":[ ]}`, `{"content":[ ` + block + `]}`},
		{"without content", `{"structuredContent":{"n":1.50}}`, `{"structuredContent":{"n":1.50},"content":[` + block + `]}`},
		{"an empty result", `{}`, `{"content":[` + block + `]}`},
		{"other bytes stay", "{ \"a\" : 9007199254740993,\n\"content\" : [ {\"type\":\"hologram\"}\t] , \"_meta\":{ } }",
			"{ \"a\" : 9007199254740993,\n\"content\" : [ {\"type\":\"hologram\"}\t," + block + "] , \"_meta\":{ } }"},
		{"a nested content is another", `{"structuredContent":{"content":[]},"content":[]}`, `{"structuredContent":{"content":[]},"content":[` + block + `]}`},
		{"content is not an array", `{"content":"x"}`, `{"content":"x"}`},
		{"not an object", `[1]`, `[1]`},
		{"nothing", ``, ``},
	} {
		if got := string(withNote([]byte(row.result), `a "b"`)); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
		if got := string(withNote([]byte(row.result), "")); got != row.result {
			t.Errorf("%s: without a note: %s", row.name, got)
		}
	}
}

// TestNotes: exec notes what seems wrong in arguments that it sends, and flat mode notes
// nothing.
func TestNotes(t *testing.T) {
	b := start(t, nil, upstream(t, "a", toolsFile(t,
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
		got, err := b.Do(t.Context(), call)
		plain := b.relay(t, "tools/call", `{"name":"a__plan","arguments":`+row.arguments+`}`)
		if want := withNote([]byte(plain), row.note); err != nil || string(got) != string(want) {
			t.Errorf("%s: %v\n got %s\nwant %s", row.name, err, got, want)
		}
		if sent := `plan ` + cmp.Or(row.sent, row.arguments); textOf(t, []byte(plain)) != sent {
			t.Errorf("%s, flat:\n got %s\nwant %s", row.name, plain, sent)
		}
	}
}
