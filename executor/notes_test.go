package executor

import "testing"

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
