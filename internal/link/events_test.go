package link

import (
	"net/http"
	"testing"
)

// The headers of 2026-07-28 take plain ASCII alone.
func TestModernHeadersOfANameThatIsNotPlain(t *testing.T) {
	for name, want := range map[string]string{
		"plain":        "plain",
		"Prüfung":      "=?base64?UHLDvGZ1bmc=?=",
		`two\nlines`:   "=?base64?dHdvCmxpbmVz?=",
		"":             "",
		"=?base64?x?=": "=?base64?PT9iYXNlNjQ/eD89?=",
	} {
		h := http.Header{}
		setModernHeaders(h, []byte(`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"`+name+`","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`))
		if got := h.Get("Mcp-Name"); got != want {
			t.Errorf("%q: Mcp-Name is %q, want %q", name, got, want)
		}
		if h.Get("Mcp-Method") != "prompts/get" || h.Get("Mcp-Protocol-Version") != "2026-07-28" {
			t.Errorf("%q: headers %v", name, h)
		}
	}
}
