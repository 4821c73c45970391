package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"mcpx/internal/mcptest"
)

const sessionHeader = "Mcp-Session-Id"

const pingLine = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// one returns a config with one upstream, a.
func one(t *testing.T, flags ...string) map[string]any {
	return map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t, flags...)}}
}

// with adds a key to a config.
func with(config map[string]any, key string, value any) map[string]any {
	config[key] = value
	return config
}

// caller is one client of a run of mcpx over HTTP.
type caller struct {
	site      *site
	path      string   // for posts
	token     string   // bearer token, if any
	headers   []string // more headers, as pairs
	session   string
	onMessage func(m message) // receives every message; may be nil
	lastID    atomic.Int64
}

// caller returns a client without a session.
func (s *site) caller(path string) *caller { return &caller{site: s, path: path} }

// client returns a caller with a session and all capabilities.
func (s *site) client(path string) *caller {
	s.t.Helper()
	c := s.caller(path)
	c.initialize()
	return c
}

// allCapabilities are the capabilities of a client that answers every request.
const allCapabilities = `{"sampling":{},"elicitation":{},"roots":{"listChanged":true}}`

// initialize performs the handshake.
func (c *caller) initialize() {
	c.site.t.Helper()
	if !c.open(initializeLine("2025-11-25", allCapabilities)) {
		c.site.t.Fatal("initialize failed")
	}
	c.deliver(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// initializeLine returns the request initialize.
func initializeLine(revision, capabilities string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"e2e","version":"1"}}}`, revision, capabilities)
}

// open posts initialize and keeps the session. It reports whether that was accepted.
func (c *caller) open(line string) bool {
	c.site.t.Helper()
	c.session = ""
	x := c.post(line)
	m := x.answer()
	c.session = x.header.Get(sessionHeader)
	if m.Error != nil && c.session != "" {
		c.site.t.Errorf("a session was opened in spite of %s", m.Error)
	}
	return m.Error == nil
}

// request returns an HTTP request with the headers of this client.
func (c *caller) request(method, path, body string) *http.Request {
	r, err := http.NewRequest(method, c.site.url+path, strings.NewReader(body))
	if err != nil {
		c.site.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.session != "" {
		r.Header.Set(sessionHeader, c.session)
	}
	for i := 0; i < len(c.headers); i += 2 {
		r.Header.Set(c.headers[i], c.headers[i+1])
	}
	return r
}

const versionMember = "io.modelcontextprotocol/protocolVersion"

// is2026Line reports whether a message belongs to 2026-07-28.
func is2026Line(line string) bool { return strings.Contains(line, versionMember) }

// post posts a message. A request of 2026-07-28 has no session, but headers that repeat
// its method and name.
func (c *caller) post(line string) *exchange {
	c.site.t.Helper()
	r := c.request(http.MethodPost, c.path, line)
	if is2026Line(line) && strings.HasPrefix(c.path, "/mcp") {
		r.Header.Del(sessionHeader)
		describe(r.Header, parse(line))
	}
	return c.site.send(r, line, c.onMessage)
}

// describe adds the headers of 2026-07-28.
func describe(h http.Header, m message) {
	h.Set("Mcp-Method", m.Method)
	var p struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	_ = json.Unmarshal(m.Params, &p)
	for header, value := range map[string]string{"Mcp-Name": p.Name + p.URI, "Mcp-Protocol-Version": unquote(memberOf(json.RawMessage(memberOf(m.Params, "_meta")), versionMember))} {
		if value != "" {
			h.Set(header, value)
		}
	}
}

func unquote(text string) (value string) {
	_ = json.Unmarshal([]byte(text), &value)
	return value
}

// deliver posts a message that gets no answer.
func (c *caller) deliver(line string) {
	c.site.t.Helper()
	x := c.post(line)
	x.waitEnd()
	if x.status != http.StatusAccepted || len(x.lines()) > 0 {
		c.site.t.Fatalf("%s: status %d, %v, %s, want 202", clip(line), x.status, x.err, clip(x.body))
	}
}

// listen opens the standing stream, for messages that belong to no call.
func (c *caller) listen() *exchange {
	c.site.t.Helper()
	x := c.site.send(c.request(http.MethodGet, c.path, ""), "", c.onMessage)
	x.waitBegun()
	if x.status != http.StatusOK {
		c.site.t.Fatalf("GET: status %d", x.status)
	}
	return x
}

// openSSE opens a session of legacy SSE.
func (c *caller) openSSE(path string) *exchange {
	c.site.t.Helper()
	x := c.site.send(c.request(http.MethodGet, path, ""), "", c.onMessage)
	x.wait("endpoint", func() bool { return x.endpoint != "" })
	c.path = x.endpoint
	return x
}

// sendRequest posts a request of the session.
func (c *caller) sendRequest(method, params string) *exchange {
	c.site.t.Helper()
	if params != "" {
		params = `,"params":` + params
	}
	return c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q%s}`, strconv.FormatInt(c.lastID.Add(1), 10), method, params))
}

// result sends a request that must succeed and returns its result.
func (c *caller) result(method, params string) string {
	c.site.t.Helper()
	m := c.sendRequest(method, params).answer()
	if m.Error != nil {
		c.site.t.Fatalf("%s %s: error %s", method, clip(params), m.Error)
	}
	return string(m.Result)
}

// exec calls an upstream's tool and returns the only text of its result.
func (c *caller) exec(server, tool, arguments string) string {
	c.site.t.Helper()
	return textOf(c.site.t, c.result("tools/call", execParams(server, tool, arguments)), false)
}

// sessions returns the number of open sessions in /status.
func (s *site) sessions(t *testing.T, token string) int {
	t.Helper()
	c := s.caller("")
	c.token = token
	x := c.try(http.MethodGet, "/status", "")
	var status struct {
		Sessions int `json:"sessions"`
	}
	if err := json.Unmarshal([]byte(x.body), &status); err != nil || x.status != http.StatusOK {
		t.Fatalf("/status: %d %s (%v)", x.status, x.body, err)
	}
	return status.Sessions
}

// try makes a request with more headers, given as pairs, and returns the answer. It
// ends an answer that is a stream.
func (c *caller) try(method, path, body string, headers ...string) *exchange {
	c.site.t.Helper()
	r := c.request(method, path, body)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return c.site.finish(r, body)
}

// finish makes a request and waits for the answer. It ends an answer that is a stream.
func (s *site) finish(r *http.Request, body string) *exchange {
	s.t.Helper()
	x := s.send(r, body, nil)
	x.waitBegun()
	if x.header.Get("Content-Type") == "text/event-stream" {
		x.drop()
	}
	x.waitEnd()
	return x
}

// want fails the test if an answer has another status or lacks a text.
func (x *exchange) want(t *testing.T, what string, status int, part string) {
	t.Helper()
	if x.status != status || !strings.Contains(x.body, part) {
		t.Errorf("%s: %d %s, want %d with %q", what, x.status, clip(x.body), status, part)
	}
}
