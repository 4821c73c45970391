package front

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/executor"
	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/server"
)

// site is the HTTP front over running upstreams.
type site struct {
	*HTTP
	url      string
	registry *registry.Registry // of the default schema
	executor *executor.Executor
}

func serveHTTP(t *testing.T, upstreams ...map[string]any) *site {
	t.Helper()
	b := start(t, upstreams...)
	h := &HTTP{Servers: map[string]*server.Server{"default": b.Server, "other": bare("x")}, BodyBytes: 10_000, Sessions: 3, Idle: time.Hour}
	s := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		h.closeStreams()
		s.Close()
		h.sessions.endAll()
	})
	return &site{h, s.URL, b.registry, b.executor}
}

// do makes a request; header are pairs of names and values.
func (s *site) do(t *testing.T, method, path, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// whole is a whole answer: status, and body.
func whole(t *testing.T, r *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(r.StatusCode, " ", string(body))
}

// open opens a session and returns its id.
func (s *site) open(t *testing.T, capabilities string) string {
	t.Helper()
	r := s.do(t, "POST", "/mcp", request("initialize", `{"protocolVersion":"2025-06-18","capabilities":`+capabilities+`}`))
	id := r.Header.Get(sessionHeader)
	if r.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("initialize: %s", whole(t, r))
	}
	if got := whole(t, s.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, sessionHeader, id)); got != "202 " {
		t.Fatalf("initialized: %s", got)
	}
	return id
}

func TestHTTPSession(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	id := s.open(t, "{}")
	call := request("tools/call", `{"name":"exec","arguments":{"server_name":"one","tool_name":"echo","arguments":{"text":"hi"}}}`)
	none := `404 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"there is no such session; send initialize"}}`
	for _, row := range []struct {
		name, method, path, body, want string
		header                         []string
	}{
		{"call", "POST", "/mcp", call, `200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}`, []string{sessionHeader, id}},
		{"call by the schema's name", "POST", "/mcp/default", call, `200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}`, []string{sessionHeader, id}},
		{"call with a slash at the end", "POST", "/mcp/", call, `200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi"}]}}`, []string{sessionHeader, id}},
		{"another schema's session", "POST", "/mcp/other", call, none, []string{sessionHeader, id}},
		{"invented", "POST", "/mcp", call, none, []string{sessionHeader, "made-up"}},
		{"another credential", "POST", "/mcp", call, none, []string{sessionHeader, id, "Authorization", "Bearer x"}},
		{"none", "POST", "/mcp", call, `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the header Mcp-Session-Id is missing; send initialize first"}}`, nil},
		{"no schema", "POST", "/mcp/nope", call, `404 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no schema \"nope\" is served; there are: default, other"}}`, nil},
		{"not JSON", "POST", "/mcp", "{", `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: not valid JSON"}}`, []string{sessionHeader, id}},
		{"too large", "POST", "/mcp", strings.Repeat("x", 20_000), `413 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a message is at most 10000 bytes (limits.body_bytes)"}}`, []string{sessionHeader, id}},
		{"not said to be JSON", "POST", "/mcp", call, `415 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Content-Type must be application/json"}}`, []string{"Content-Type", "text/plain"}},
		{"unknown revision", "POST", "/mcp", call, `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Unsupported protocol version: 1999-01-01"}}`, []string{"Mcp-Protocol-Version", "1999-01-01"}},
		{"initialize that fails", "POST", "/mcp", request("initialize", `{"protocolVersion":"1999-01-01"}`), `200 {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Unsupported protocol version: 1999-01-01"}}`, nil},
		{"stream without a session", "GET", "/mcp", "", `400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the header Mcp-Session-Id is missing; send initialize first"}}`, nil},
		{"message without a session", "POST", "/message", call, `404 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"there is no such session; open one with GET /sse"}}`, nil},
		{"end", "DELETE", "/mcp", "", "204 ", []string{sessionHeader, id}},
		{"after the end", "POST", "/mcp", call, none, []string{sessionHeader, id}},
		{"health", "GET", "/health", "", `200 {"status":"ok"}`, nil},
	} {
		if got := whole(t, s.do(t, row.method, row.path, row.body, row.header...)); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}

// TestHTTPInvalidMessages: what is no message of JSON-RPC is refused as such, with a
// session and without one, and the session lives on.
func TestHTTPInvalidMessages(t *testing.T) {
	s := serveHTTP(t)
	id := s.open(t, "{}")
	refused := func(id string, code int, message string) string {
		return fmt.Sprintf(`400 {"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, code, rawjson.AppendString(nil, message))
	}
	const version = `Invalid request: "jsonrpc" must be "2.0"`
	for _, row := range []struct{ name, body, want string }{
		{"text", `hello`, refused("null", -32700, "Parse error: not valid JSON")},
		{"nothing", ``, refused("null", -32700, "Parse error: not valid JSON")},
		{"half a request", `{"jsonrpc":"2.0","id":1,"method":"ping"`, refused("null", -32700, "Parse error: not valid JSON")},
		{"half a batch", `[{"jsonrpc":"2.0"`, refused("null", -32700, "Parse error: not valid JSON")},
		{"no version", `{"id":5,"method":"ping"}`, refused("5", -32600, version)},
		{"no version, initialize", `{"id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18"}}`, refused(`"a"`, -32600, version)},
		{"no version, notification", `{"method":"notifications/initialized"}`, refused("null", -32600, version)},
		{"no version, response", `{"id":5,"result":{}}`, refused("5", -32600, version)},
		{"no version and no valid id", `{"id":[],"method":"ping"}`, refused("null", -32600, `Invalid request: "id" must be a string or a number`)},
		{"no version, 2026-07-28", `{"id":5,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, refused("5", -32600, version)},
		{"another version", `{"jsonrpc":"1.0","id":5,"method":"ping"}`, refused("5", -32600, version)},
		{"no method", `{"jsonrpc":"2.0","id":5}`, refused("5", -32600, `Invalid request: no "method"`)},
		{"a number", `5`, refused("null", -32600, "Invalid request: a message is one JSON object")},
	} {
		for name, header := range map[string][]string{"session": {sessionHeader, id}, "no session": nil} {
			if got := whole(t, s.do(t, "POST", "/mcp", row.body, header...)); got != row.want {
				t.Errorf("%s, %s:\n got %s\nwant %s", row.name, name, got, row.want)
			}
		}
	}
	if got := whole(t, s.do(t, "POST", "/mcp", request("ping", ""), sessionHeader, id)); got != "200 "+result("{}") {
		t.Errorf("the session is gone: %s", got)
	}
}

func TestStatus(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	s.registry.Settled(t.Context(), "one")
	got := whole(t, s.do(t, "GET", "/status", ""))
	for _, want := range []string{
		`200 {"version":"1.2.3","sessions":0,"schemas":{"default":[{"name":"one","transport":"stdio","state":"ready","startup_ms":`,
		`"other":[{"name":"x","transport":"","state":"starting","tools":0,"prompts":0,"resources":0,"tokens":0}]},"context":{"default":{"without":`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("status has no %s: %s", want, got)
		}
	}
}

func TestWhatIsJSONSaysSo(t *testing.T) {
	s := serveHTTP(t)
	for _, path := range []string{"/health", "/status", "/mcp", "/mcp/nope"} {
		if got := s.do(t, "GET", path, "").Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: Content-Type %q", path, got)
		}
	}
}

// What a client sends that is not UTF-8 is replaced before anything is made of it:
// an upstream that gets it could end.
func TestHTTPBodyIsUTF8(t *testing.T) {
	s := serveHTTP(t)
	got := whole(t, s.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":"`+"a\xffb"+`","method":"ping"}`, sessionHeader, s.open(t, "{}")))
	if want := `200 {"jsonrpc":"2.0","id":"` + "a\ufffdb" + `","result":{}}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A client may choose how it sees the tools, and then hears whose they are.
func TestClientChoosesExposure(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	listed := func(query string) string {
		r := s.do(t, "POST", "/mcp"+query, request("initialize", `{"protocolVersion":"2025-06-18"}`))
		id := r.Header.Get(sessionHeader)
		defer s.do(t, "DELETE", "/mcp"+query, "", sessionHeader, id)
		return whole(t, s.do(t, "POST", "/mcp"+query, request("tools/list", "{}"), sessionHeader, id))
	}
	origin := `"_meta":{"mcpx/server":"one","mcpx/name":"echo"}`
	if got := listed("?expose=flat"); !strings.Contains(got, `"name":"one__echo"`) || !strings.Contains(got, origin) {
		t.Errorf("flat: %.300s", got)
	}
	for _, query := range []string{"", "?expose=lazy"} {
		if got := listed(query); strings.Count(got, `"inputSchema"`) != 2 || strings.Contains(got, "_meta") {
			t.Errorf("%q: %.300s", query, got)
		}
	}
	if got := whole(t, s.do(t, "POST", "/mcp?expose=x", request("ping", "{}"))); !strings.HasPrefix(got, "400 ") || !strings.Contains(got, "lazy or flat") {
		t.Errorf("unknown: %s", got)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	s := serveHTTP(t)
	var last string
	for range 3 {
		last = s.open(t, "{}")
	}
	for _, method := range [][3]string{{"POST", "/mcp", request("initialize", `{"protocolVersion":"2025-06-18"}`)}, {"GET", "/sse", ""}} {
		r := s.do(t, method[0], method[1], method[2])
		if got := whole(t, r); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "limits.sessions") || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s", method[1], got)
		}
	}
	if got := whole(t, s.do(t, "POST", "/mcp", request("ping", ""), sessionHeader, last)); got != `200 {"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("a live session answers %s", got)
	}
}

// TestTransportsAreApart: a session belongs to the transport that opened it.
func TestTransportsAreApart(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	id := s.open(t, "{}")
	if got := whole(t, s.do(t, "POST", "/message?sessionId="+id, request("ping", ""))); !strings.HasPrefix(got, "404 ") {
		t.Errorf("a session of /mcp on /message: %s", got)
	}
	e := events(s.do(t, "GET", "/sse", ""))
	if !e.Scan() {
		t.Fatal("no endpoint")
	}
	_, older, _ := strings.Cut(e.Text(), "sessionId=")
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if got := whole(t, s.do(t, method, "/mcp", request("ping", ""), sessionHeader, older)); !strings.HasPrefix(got, "404 ") {
			t.Errorf("a session of /sse on %s /mcp: %s", method, got)
		}
	}
	s.Stateless = true
	if got := whole(t, s.do(t, "GET", "/sse", "")); !strings.HasPrefix(got, "405 ") {
		t.Errorf("/sse where no session is kept: %s", got)
	}
}

// TestHeadOpensNothing: a stream that nothing is written to would never be seen to
// end.
func TestHeadOpensNothing(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	id := s.open(t, "{}")
	standing := events(s.do(t, "GET", "/mcp", "", sessionHeader, id))
	for path, allowed := range map[string]string{"/mcp": "GET, POST, DELETE", "/mcp/default": "GET, POST, DELETE", "/sse": "GET", "/sse/default": "GET"} {
		r := s.do(t, "HEAD", path, "", sessionHeader, id)
		if got := whole(t, r); got != "405 " || r.Header.Get("Allow") != allowed {
			t.Errorf("HEAD %s: %s, allowed %s", path, got, r.Header.Get("Allow"))
		}
	}
	if n := len(s.sessions.all()); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
	n := s.sessions.all()[0]
	if err := n.tell([]byte(`{"still":"there"}`)); err != nil || !standing.Scan() || standing.Text() != `{"still":"there"}` {
		t.Errorf("the standing stream has %q: %v", standing.Text(), err)
	}
}

// events reads the data of server-sent events.
func events(r *http.Response) *bufio.Scanner {
	lines := bufio.NewScanner(r.Body)
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		i := bytes.Index(data, []byte("\n\n"))
		if i < 0 {
			if atEOF {
				return len(data), nil, nil
			}
			return 0, nil, nil
		}
		_, event, _ := bytes.Cut(data[:i], []byte("\ndata: "))
		return i + 2, event, nil
	})
	return lines
}

func TestACallHasItsOwnStream(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	id := s.open(t, `{"sampling":{}}`)
	r := s.do(t, "POST", "/mcp", request("tools/call", exec("progress", `{"steps":3}`)), sessionHeader, id)
	if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("Content-Type %s", kind)
	}
	var got []string
	for e := events(r); e.Scan(); {
		got = append(got, e.Text())
	}
	if len(got) != 4 || !strings.Contains(got[0], `"progressToken":"tok","progress":1`) || !strings.Contains(got[3], `"result"`) {
		t.Errorf("the stream has %q", got)
	}

	// What the upstream asks goes on the stream of the call, without any other.
	r = s.do(t, "POST", "/mcp", request("tools/call", exec("ask", `{"method":"sampling/createMessage"}`)), sessionHeader, id)
	e := events(r)
	if !e.Scan() || !strings.Contains(e.Text(), `"method":"sampling/createMessage"`) {
		t.Fatalf("the stream has %s", e.Text())
	}
	asked := string(rawjson.Get(e.Bytes(), "id"))
	if got := whole(t, s.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":`+asked+`,"result":{"x":1}}`, sessionHeader, id)); got != "202 " {
		t.Errorf("the answer is answered with %s", got)
	}
	if !e.Scan() || !strings.Contains(e.Text(), `{\"x\":1}`) {
		t.Errorf("then the stream has %s", e.Text())
	}
}

func TestStandingStream(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one", "-full"))
	id := s.open(t, "{}")
	r := s.do(t, "GET", "/mcp", "", sessionHeader, id)
	e := events(r)
	if got := whole(t, s.do(t, "POST", "/mcp", request("resources/subscribe", `{"uri":"test://one"}`), sessionHeader, id)); got != `200 {"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Fatal(got)
	}
	other := s.open(t, "{}")
	s.do(t, "POST", "/mcp", request("tools/call", exec("say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`)), sessionHeader, other)
	for e.Scan() && !strings.Contains(e.Text(), "resources/updated") {
	}
	if want := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://one"}}`; e.Text() != want {
		t.Errorf("the stream has %s, want %s", e.Text(), want)
	}
	// A second one takes the place of the first.
	again := s.do(t, "GET", "/mcp", "", sessionHeader, id)
	for e.Scan() {
	}
	s.do(t, "DELETE", "/mcp", "", sessionHeader, id)
	for e := events(again); e.Scan(); {
	}
}

func TestSSE(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	r := s.do(t, "GET", "/sse", "")
	e := events(r)
	if !e.Scan() || !strings.HasPrefix(e.Text(), "/message?sessionId=") {
		t.Fatalf("the stream begins with %s", e.Text())
	}
	path := e.Text()
	if got := whole(t, s.do(t, "POST", path, request("initialize", `{"protocolVersion":"2024-11-05","capabilities":{}}`))); got != "202 Accepted" {
		t.Errorf("posting is answered with %s", got)
	}
	if want := `"protocolVersion":"2024-11-05"`; !e.Scan() || !strings.Contains(e.Text(), want) {
		t.Errorf("the stream has %s, want %s", e.Text(), want)
	}
	for _, row := range [][2]string{
		{`hello`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: not valid JSON"}}`},
		{`{"id":5,"method":"ping"}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\""}}`},
	} {
		s.do(t, "POST", path, row[0])
		for e.Scan() && strings.Contains(e.Text(), "list_changed") {
		}
		if e.Text() != row[1] {
			t.Errorf("%s: the stream has %s, want %s", row[0], e.Text(), row[1])
		}
	}
	s.do(t, "POST", path, request("tools/call", exec("progress", `{"steps":2}`)))
	for _, want := range []string{`"progress":1`, `"progress":2`, `"result"`} {
		for e.Scan() && strings.Contains(e.Text(), "list_changed") {
		}
		if !strings.Contains(e.Text(), want) {
			t.Errorf("the stream has %s, want %s", e.Text(), want)
		}
	}
	if got := whole(t, s.do(t, "POST", path, strings.Repeat("x", 20_000))); !strings.HasPrefix(got, "413 ") {
		t.Errorf("a large message is answered with %s", got)
	}
	_ = r.Body.Close()
	eventually(t, "the session ends with its stream", func() bool {
		return strings.HasPrefix(whole(t, s.do(t, "POST", path, request("ping", ""))), "404 ")
	})
}

func TestModernOverHTTP(t *testing.T) {
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

// TestListenersOfOneMachine: programs that send no credential look alike, and each
// hears what it asked for, and is asked what is for it.
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

	// Of two calls at once it is not certain whose question it is.
	modern := func(tool, arguments string) chan string {
		params := strings.Replace(exec(tool, arguments), `"_meta":{"progressToken":"tok"}`, meta(`{"roots":{}}`, ""), 1)
		answer := make(chan string, 1)
		go func() {
			answer <- whole(t, s.do(t, "POST", "/mcp", request("tools/call", params), "Mcp-Method", "tools/call", "Mcp-Name", "exec"))
		}()
		return answer
	}
	sleeps := modern("sleep", `{"ms":3000}`)
	for limit := time.Now().Add(10 * time.Second); ; {
		if len(sleeps) > 0 { // it slept while the machine did
			<-sleeps
			sleeps = modern("sleep", `{"ms":3000}`)
		}
		got := <-modern("ask", `{"method":"roots/list"}`)
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

// TestAskedClientLeaves: an upstream is not left waiting for a client that has gone.
func TestAskedClientLeaves(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	id := s.open(t, `{"roots":{}}`)
	standing := events(s.do(t, "GET", "/mcp", "", sessionHeader, id))
	n, done := s.sessions.find(id, false, httptest.NewRequest(http.MethodGet, "/", nil))
	done()
	asked := make(chan error, 1)
	go func() {
		_, err := n.client.Request(t.Context(), "roots/list", nil)
		asked <- err
	}()
	if !standing.Scan() || !strings.Contains(standing.Text(), `"method":"roots/list"`) {
		t.Fatalf("the stream has %s", standing.Text())
	}
	if got := whole(t, s.do(t, "DELETE", "/mcp", "", sessionHeader, id)); got != "204 " {
		t.Fatal(got)
	}
	if err := <-asked; err == nil || !strings.Contains(err.Error(), "the client has left") {
		t.Errorf("the question ends with %v", err)
	}
}

// A name that is not plain ASCII comes in Base64, and so do arguments that a tool
// wants repeated in headers.
func TestModernHeaders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tools.json")
	tools := `[{"name":"query","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]`
	if err := os.WriteFile(file, []byte(tools), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveHTTP(t, upstream(t, "one", "-tools-file", file))
	s.executor.Settle(t.Context(), time.Minute)
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

// What is wrong with a request of 2026-07-28 is its status too.
func TestHTTPModernRefusals(t *testing.T) {
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

func TestStateless(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	s.Stateless = true
	call := request("tools/call", exec("progress", `{"steps":1}`))
	got := whole(t, s.do(t, "POST", "/mcp", call, "Mcp-Protocol-Version", "2025-06-18"))
	if !strings.Contains(got, `"text":"1 steps"`) || len(s.sessions.byID) != 0 {
		t.Errorf("got %s", got)
	}
	r := s.do(t, "POST", "/mcp", request("initialize", `{"protocolVersion":"2025-06-18"}`))
	if got := whole(t, r); r.Header.Get(sessionHeader) != "" || !strings.Contains(got, "2025-06-18") {
		t.Errorf("initialize: %s", got)
	}
	if got := whole(t, s.do(t, "GET", "/mcp", "")); !strings.HasPrefix(got, "405 ") {
		t.Errorf("GET is answered with %s", got)
	}
}

func TestIdleSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newSessions(10, time.Minute)
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil)
		idle, err := all.open(bare(), r)
		if err != nil {
			t.Fatal(err)
		}
		busy, err := all.open(bare(), r)
		if err != nil {
			t.Fatal(err)
		}
		_, done := all.find(busy.id, false, r)
		all.tasks.Go(all.expire)
		<-time.After(2 * time.Minute)
		if n, _ := all.find(idle.id, false, r); n != nil || idle.client.Conn.Context().Err() == nil {
			t.Error("the idle session is still there")
		}
		if n, again := all.find(busy.id, false, r); n == nil {
			t.Error("the busy one has gone")
		} else {
			again()
		}
		done()
		<-time.After(2 * time.Minute)
		if n, _ := all.find(busy.id, false, r); n != nil {
			t.Error("it stays though it is idle now")
		}
		all.close()
		synctest.Wait()
	})
}

// listening is the HTTP front on a listener of its own.
type listening struct {
	*site
	listener net.Listener
	stop     context.CancelFunc
	wait     func() error // for the end of Run
}

// listenHTTP runs a front over upstreams until the test ends.
func listenHTTP(t *testing.T, h *HTTP, upstreams ...map[string]any) *listening {
	t.Helper()
	b := start(t, upstreams...)
	h.Servers = map[string]*server.Server{"default": b.Server}
	h.BodyBytes, h.Sessions, h.Idle = 8<<20, 10, time.Hour
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx, l) }()
	wait := sync.OnceValue(func() error { return <-ended })
	t.Cleanup(func() {
		cancel()
		_ = wait()
	})
	return &listening{&site{h, "http://" + l.Addr().String(), b.registry, b.executor}, l, cancel, wait}
}

// TestHTTPRunEnds when the calls in flight do, whatever streams are open.
func TestHTTPRunEnds(t *testing.T) {
	limits := usualTimes
	limits.drain = 2 * patience
	s := listenHTTP(t, &HTTP{times: limits}, upstream(t, "one"))
	id := s.open(t, "{}")
	streams := map[string]*http.Response{
		"a standing stream": s.do(t, "GET", "/mcp", "", sessionHeader, id),
		"a stream of SSE":   s.do(t, "GET", "/sse", ""),
		"subscriptions/listen": s.do(t, "POST", "/mcp", request("subscriptions/listen", `{"notifications":{"promptsListChanged":true},`+meta("{}", "")+`}`),
			"Mcp-Method", "subscriptions/listen"),
	}
	call := s.do(t, "POST", "/mcp", request("tools/call", exec("progress", `{"steps":2,"every_ms":200}`)), sessionHeader, id)
	begin := time.Now()
	s.stop()
	if got := whole(t, call); !strings.Contains(got, `"text":"2 steps"`) {
		t.Errorf("the call in flight got %s", got)
	}
	for name, stream := range streams {
		if got := whole(t, stream); !strings.HasPrefix(got, "200 ") {
			t.Errorf("%s ended with %s", name, got)
		}
	}
	if err := s.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if took := time.Since(begin); took > patience {
		t.Errorf("it took %s, though nothing was in flight any more", took)
	}
	if err := s.Run(t.Context(), s.listener); err == nil {
		t.Error("a closed listener is served")
	}
}

func TestStreamIsBounded(t *testing.T) {
	s := newStream(usualTimes, streamBytes)
	if err := s.Send(make([]byte, streamBytes)); err != nil {
		t.Fatal(err)
	}
	if err := s.Send([]byte("x")); err == nil {
		t.Error("more than the bound is taken")
	}
	s.end([]byte("last"))
	s.end([]byte("again"))
	for i, want := range []int{streamBytes, len("last")} {
		if messages, ended := s.take(); len(messages) != 1 || len(messages[0]) != want || ended != (i == 1) {
			t.Errorf("%d messages, ended %v", len(messages), ended)
		}
	}
	if err := s.Send([]byte("x")); err == nil {
		t.Error("a message after the end is taken")
	}
	if got := string(appendEvent(nil, "message", []byte("{\n}\r"))); got != "event: message\ndata: { } \n\n" {
		t.Errorf("event %q", got)
	}
}
