package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestInvalidLinesAreAnswered: a line that is no request gets an error, with its ID if
// that can be read, and the connection stays open. The whole table is TestParse in internal/rpc.
func TestInvalidLinesAreAnswered(t *testing.T) {
	t.Parallel()
	config := map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t)}, "limits": map[string]any{"message_bytes": 100_000}}
	p := start(t, config, options{})
	p.initialize()
	long := `{"jsonrpc":"2.0","id":"long","method":"ping","params":{"pad":"` + strings.Repeat("x", 100_000) + `"}}`
	deep := `{"jsonrpc":"2.0","id":"deep","method":"ping","params":{"a":` + strings.Repeat("[", 40_000) + strings.Repeat("]", 40_000) + `}}`
	for i, c := range []struct{ name, line, want string }{
		{"text", `hello`, `null -32700`},
		{"half a request", `{"jsonrpc":"2.0","id":1,"method":"ping"`, `null -32700`},
		{"too deep", deep, `null -32700`},
		{"too long", long, `null -32600`},
		{"an array", `[{"jsonrpc":"2.0","id":"batch","method":"ping"}]`, `null -32600`},
		{"no method", `{"jsonrpc":"2.0","id":"none"}`, `"none" -32600`},
		{"another version", `{"jsonrpc":"1.0","id":"version","method":"ping"}`, `"version" -32600`},
		{"no version", `{"method":"notifications/exit"}`, `null -32600`},
		{"an ID that is null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `null -32600`},
		{"a key twice", `{"jsonrpc":"2.0","id":"twice","method":"ping","m\u0065thod":"tools/list"}`, `"twice" -32600`},
		{"params of a wrong type", `{"jsonrpc":"2.0","id":"meta","method":"tools/list","params":{"_meta":5}}`, `"meta" -32602`},
		{"a result for nobody", `{"jsonrpc":"2.0","id":"stranger","result":{}}`, ``},
		{"a notification with a request's method", `{"jsonrpc":"2.0","method":"tools/list"}`, ``},
		{"a cancellation without an ID", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, ``},
		{"a blank line", " \t\r", ``},

		{"CRLF", `{"jsonrpc":"2.0","id":"crlf","method":"ping"}` + "\r", `"crlf" 0`},
		{"a byte order mark", "\ufeff" + `{"jsonrpc":"2.0","id":"mark","method":"ping"}`, `"mark" 0`},
		{"spaces and another order", ` { "params" : {} , "method" : "p\u0069ng" , "id" : "order" , "jsonrpc" : "2.0" } `, `"order" 0`},
		{"unknown members", `{"jsonrpc":"2.0","id":"unknown","method":"ping","extra":[1],"Method":"tools/list","ID":7}`, `"unknown" 0`},
		{"invalid UTF-8", `{"jsonrpc":"2.0","id":"utf","method":"ping","params":{"a":"` + "\xff" + `"}}`, `"utf" 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := p.count()
			p.write(c.line)
			if id, _, _ := strings.Cut(c.want, " "); strings.HasPrefix(id, `"`) {
				p.answer(id) // requests are not answered in order
			}
			marker := fmt.Sprintf(`"marker %d"`, i)
			p.send(marker, "initialize", `{}`) // answered in order, so after what the line caused
			p.answer(marker)
			if got := strings.Join(p.codesSince(before, marker), "|"); got != c.want {
				t.Errorf("answered with %q, want %q", got, c.want)
			}
		})
	}
	p.exec("a", "echo", `{"text":"still here"}`)
}

// count returns the number of answers so far.
func (p *process) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.order)
}

// codesSince lists ID and error code, 0 for a result, of the answers after the first
// n, without the one to the marker.
func (p *process) codesSince(n int, marker string) (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.order[n:] {
		if string(m.ID) == marker {
			continue
		}
		var e struct {
			Code int `json:"code"`
		}
		_ = json.Unmarshal(m.Error, &e)
		list = append(list, fmt.Sprintf("%s %d", m.ID, e.Code))
	}
	return list
}

// quote returns a text as JSON.
func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}
