package link

import (
	"net/http"
	"testing"
)

// The headers of 2026-07-28 take plain ASCII alone.
func Test2026HeadersOfANameThatIsNotPlain(t *testing.T) {
	for name, want := range map[string]string{
		"plain":        "plain",
		"Prüfung":      "=?base64?UHLDvGZ1bmc=?=",
		`two\nlines`:   "=?base64?dHdvCmxpbmVz?=",
		"":             "",
		"=?base64?x?=": "=?base64?PT9iYXNlNjQ/eD89?=",
	} {
		h := http.Header{}
		set2026Headers(h, []byte(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"`+name+`","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`))
		if got := h.Get("Mcp-Name"); got != want {
			t.Errorf("%q: Mcp-Name is %q, want %q", name, got, want)
		}
		if h.Get("Mcp-Method") != "prompts/get" || h.Get("Mcp-Protocol-Version") != "2026-07-28" {
			t.Errorf("%q: headers %v", name, h)
		}
	}
}

// TestParameterHeaders: a call repeats the arguments that its tool's schema names, and only
// a call does.
func TestParameterHeaders(t *testing.T) {
	const schema = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"big":{"type":"integer","x-mcp-header":"Big"},"query":{"type":"string"}}}`
	for _, c := range []struct{ name, method, schema, arguments, region, big string }{
		{"mirrored", "tools/call", schema, `{"region":"us-west1","big":9007199254740991,"query":"x"}`, "us-west1", "9007199254740991"},
		{"not plain", "tools/call", schema, `{"region":" ü"}`, "=?base64?IMO8?=", ""},
		{"left out", "tools/call", schema, `{"region":null}`, "", ""},
		{"no arguments", "tools/call", schema, `null`, "", ""},
		{"no annotations", "tools/call", `{"properties":{"region":{}}}`, `{"region":"a"}`, "", ""},
		{"unknown tool", "tools/call", ``, `{"region":"a"}`, "", ""},
		{"no call", "prompts/get", schema, `{"region":"a"}`, "", ""},
	} {
		l := &httpLink{Options: Options{InputSchema: func(string) []byte { return []byte(c.schema) }}}
		message := []byte(`{"jsonrpc":"2.0","id":1,"method":"` + c.method + `","params":{"name":"t","arguments":` + c.arguments + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
		h := http.Header{}
		set2026Headers(h, message)
		l.setParameterHeaders(h, message)
		if h.Get("Mcp-Param-Region") != c.region || h.Get("Mcp-Param-Big") != c.big || h.Get("Mcp-Param-Query") != "" {
			t.Errorf("%s: headers %v", c.name, h)
		}
	}
}
