package httpfront

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/internal/rawjson"
	"mcpx/internal/seal"
	"mcpx/server"
)

func Test2026OverHTTP(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	body := request("tools/call", `{"name":"exec","arguments":{"server_name":"one","tool_name":"echo","arguments":{"text":"hi"}},`+meta("{}", "")+`}`)
	for _, row := range []struct {
		name, want string
		header     []string
	}{
		{"right", `200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mcpx","version":"1.2.3"}}}}`, []string{"Mcp-Method", "tools/call", "Mcp-Name", "exec"}},
		{"no method", `400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"the header Mcp-Method is \"\", but the method is \"tools/call\""}}`, nil},
		{"another name", `400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"the header Mcp-Name is \"inspect\", but the name is \"exec\""}}`, []string{"Mcp-Method", "tools/call", "Mcp-Name", "inspect"}},
	} {
		if got := whole(t, s.do(t, "POST", "/mcp", body, row.header...)); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
	note := `{"jsonrpc":"2.0","method":"notifications/x","params":{` + meta("{}", "") + `}}`
	if got := whole(t, s.do(t, "POST", "/mcp", note, "Mcp-Method", "notifications/x")); got != "202 " {
		t.Errorf("a notification is answered with %s", got)
	}
	bare := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	if got := whole(t, s.do(t, "POST", "/mcp", bare, "Mcp-Method", "notifications/cancelled", "Mcp-Protocol-Version", "2026-07-28")); got != "202 " {
		t.Errorf("a notification without _meta is answered with %s", got)
	}
}

// TestListenersOfOneMachine: programs without a credential look alike. Each gets the
// notifications and requests that are meant for it.
func TestListenersOfOneMachine(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one", "-full", "-name", "one"))
	whole(t, s.do(t, "POST", "/mcp", request("tools/call", `{"name":"inspect","arguments":{"server_name":"one"},`+meta("{}", "")+`}`), "Mcp-Method", "tools/call", "Mcp-Name", "inspect"))
	listen := func(uri string) *bufio.Scanner {
		t.Helper()
		e := events(s.do(t, "POST", "/mcp", request("subscriptions/listen", `{"notifications":{"resourceSubscriptions":["`+uri+`"]},`+meta("{}", "")+`}`), "Mcp-Method", "subscriptions/listen"))
		if !e.Scan() || !strings.Contains(e.Text(), "acknowledged") {
			t.Fatalf("the stream begins with %s", e.Text())
		}
		return e
	}
	one, own := listen("test://one"), listen("own://one")
	say := exec("say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"},{"uri":"own://one"}]}`)
	say = strings.Replace(say, `"_meta":{"progressToken":"tok"}`, meta("{}", ""), 1)
	whole(t, s.do(t, "POST", "/mcp", request("tools/call", say), "Mcp-Method", "tools/call", "Mcp-Name", "exec"))
	for uri, e := range map[string]*bufio.Scanner{"test://one": one, "own://one": own} {
		if !e.Scan() || !strings.Contains(e.Text(), `"uri":"`+uri+`"`) {
			t.Errorf("who listens to %s hears %s", uri, e.Text())
		}
	}

	// While two calls run, mcpx cannot know which of them an upstream's request belongs to.
	call := func(tool, arguments string) chan string {
		params := strings.Replace(exec(tool, arguments), `"_meta":{"progressToken":"tok"}`, meta(`{"roots":{}}`, ""), 1)
		answer := make(chan string, 1)
		go func() {
			answer <- whole(t, s.do(t, "POST", "/mcp", request("tools/call", params), "Mcp-Method", "tools/call", "Mcp-Name", "exec"))
		}()
		return answer
	}
	sleeps := call("sleep", `{"ms":3000}`)
	for limit := time.Now().Add(10 * time.Second); ; {
		if len(sleeps) > 0 { // it slept while the machine did
			<-sleeps
			sleeps = call("sleep", `{"ms":3000}`)
		}
		got := <-call("ask", `{"method":"roots/list"}`)
		if strings.Contains(got, "several clients have calls in flight") {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the question was answered with %s", got)
		}
	}
	if got := <-sleeps; strings.Contains(got, "input_required") || !strings.Contains(got, `"resultType":"complete"`) {
		t.Errorf("the other call is answered with %s", got)
	}
}

// Test2026Headers: a name that is not plain ASCII comes in Base64, and so do
// arguments that a tool wants repeated in headers.
func Test2026Headers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tools.json")
	tools := `[{"name":"query","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]`
	if err := os.WriteFile(file, []byte(tools), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveHTTP(t, upstream(t, "one", "-tools-file", file))
	s.executor.Settle(t.Context(), nil, time.Minute)
	const mismatched = `400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,`
	uri := fmt.Sprintf(`{"uri":"no://ü",%s}`, meta("{}", ""))
	call := fmt.Sprintf(`{"name":"one__query","arguments":{"region":"Süd"},%s}`, meta("{}", ""))
	for _, row := range []struct {
		name, method, params, want string
		header                     []string
	}{
		{"name in Base64", "resources/read", uri, `200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Resource not found: no://ü"`, []string{"Mcp-Name", "=?base64?bm86Ly/DvA==?="}},
		{"another name in Base64", "resources/read", uri, mismatched, []string{"Mcp-Name", "=?base64?bm86Ly8=?="}},
		{"no Base64", "resources/read", uri, mismatched, []string{"Mcp-Name", "=?base64?!?="}},
		{"argument", "tools/call", call, `200 {"jsonrpc":"2.0","id":1,"result":`, []string{"Mcp-Name", "one__query", "Mcp-Param-Region", "=?base64?U8O8ZA==?="}},
		{"another argument", "tools/call", call, mismatched, []string{"Mcp-Name", "one__query", "Mcp-Param-Region", "Nord"}},
		{"no argument", "tools/call", call, mismatched, []string{"Mcp-Name", "one__query"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			header := append(row.header, "Mcp-Method", row.method)
			if got := whole(t, s.do(t, "POST", "/mcp?expose=flat", request(row.method, row.params), header...)); !strings.HasPrefix(got, row.want) {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

// TestHTTP2026Refusals: the HTTP status of 2026-07-28 shows what is wrong with a
// request.
func TestHTTP2026Refusals(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	const revision = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	capable := `{` + meta("{}", "") + `}`
	tests := []struct{ name, method, params, want string }{
		{"removed method", "ping", capable, `404 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method 'ping' not found"}}`},
		{"unknown method", "no/such", capable, `404 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method 'no/such' not found"}}`},
		{"no _meta", "tools/list", `{}`, `400 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: \"_meta\" must have io.modelcontextprotocol/protocolVersion"`},
		{"no revision", "tools/list", `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}`, `400 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,`},
		{"no capabilities", "tools/list", `{"_meta":{` + revision + `}}`, `400 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,`},
		{"unknown revision", "tools/list", strings.Replace(capable, "2026-07-28", "2027-01-01", 1), `400 {"jsonrpc":"2.0","id":7,"error":{"code":-32022,`},
		{"another revision than the header's", "tools/list", strings.Replace(capable, "2026-07-28", "2026-12-31", 1), `400 {"jsonrpc":"2.0","id":7,"error":{"code":-32020,`},
		{"fine", "tools/list", capable, `200 {"jsonrpc":"2.0","id":7,"result":`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			headers := []string{"Mcp-Method", tt.method, "Mcp-Protocol-Version", "2026-07-28"}
			if strings.Contains(tt.params, "2027-01-01") {
				headers = headers[:2]
			}
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, tt.method, tt.params)
			if got := whole(t, s.do(t, "POST", "/mcp", body, headers...)); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Test2026Status: a call that requires a capability of the client has the status that
// 2026-07-28 wants.
func Test2026Status(t *testing.T) {
	for response, want := range map[string]int{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"no sampling"}}`: http.StatusBadRequest,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"-32021"}}`:      http.StatusOK,
		`{"jsonrpc":"2.0","id":1,"result":{"error":{"code":-32021}}}`:              http.StatusOK,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`:                         http.StatusOK,
		``: http.StatusOK,
	} {
		if got := status2026([]byte(response)); got != want {
			t.Errorf("%s: %d, want %d", response, got, want)
		}
	}
}

// TestRoundsOfSeveralReplicas: every replica continues a call of 2026-07-28 if the upstream speaks
// it too. Otherwise the client learns that the call waits elsewhere.
func TestRoundsOfSeveralReplicas(t *testing.T) {
	key := bytes.Repeat([]byte{1}, seal.KeyBytes)
	var replicas []*site
	for range 2 {
		b := startWith(t, server.Options{Rounds: seal.New(seal.Round, []seal.Key{key})}, upstream(t, "one", "-only-2026"), upstream(t, "old"))
		h := &HTTP{Servers: map[string]*server.Server{"default": b.Server}, Limits: config.Limits{BodyBytes: 10_000, Sessions: 3, SessionIdle: time.Hour}}
		s := httptest.NewServer(h.Handler())
		t.Cleanup(func() {
			h.closeStreams()
			s.Close()
			h.close()
		})
		b.executor.Settle(t.Context(), nil, time.Minute)
		replicas = append(replicas, &site{HTTP: h, url: s.URL})
	}
	round := func(s *site, name, more string) string {
		params := strings.Replace(exec("ask", `{"method":"roots/list"}`), `"_meta":{"progressToken":"tok"}`, meta(`{"roots":{}}`, "")+more, 1)
		params = strings.Replace(params, `"one"`, `"`+name+`"`, 1)
		return whole(t, s.do(t, "POST", "/mcp", request("tools/call", params), "Mcp-Method", "tools/call", "Mcp-Name", "exec"))
	}
	for _, row := range []struct {
		name, key string
		want      [2]string // on the replica of the first round, and on the other
	}{
		{"one", "one", [2]string{`state 1 {\"one\":{\"roots\":[]}}`, `state 1 {\"one\":{\"roots\":[]}}`}},
		{"old", "input", [2]string{`\"roots\":[]`, "waits on another replica of mcpx"}},
	} {
		for i, want := range row.want {
			asked := round(replicas[0], row.name, "")
			_, result, _ := strings.Cut(asked, " ")
			state := rawjson.Get(rawjson.Get([]byte(result), "result"), "requestState")
			if !strings.Contains(asked, `"inputRequests":{"`+row.key+`":{"method":"roots/list"`) || !strings.HasPrefix(string(state), `"v1.`) {
				t.Fatalf("%s: the first round ends with %s", row.name, asked)
			}
			if got := round(replicas[i], row.name, `,"inputResponses":{"`+row.key+`":{"roots":[]}},"requestState":`+string(state)); !strings.Contains(got, want) {
				t.Errorf("%s, on replica %d: %s", row.name, i, got)
			}
		}
	}
}
