package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry"
	"mcpx/registry/child"
)

func TestMain(m *testing.M) {
	child.WatchIfAsked()
	mcptest.Main()
	os.Exit(m.Run())
}

// bench is a Server over running upstreams, and what it reports.
type bench struct {
	*Server
	client *Client
	gates  []executor.Gate
	levels []string // set by clients for mcpx's own log

	mu     sync.Mutex
	events []executor.Event
	log    strings.Builder
}

func (b *bench) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *bench) observe(e executor.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

// outcomes counts the calls by what became of them.
func (b *bench) outcomes() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := map[string]int{}
	for _, e := range b.events {
		n[e.Outcome]++
	}
	return n
}

// newUpstream returns an entry of mcp_servers.
func newUpstream(t testing.TB, name string, flags ...string) map[string]any {
	u := mcptest.Upstream(t, flags...)
	u["name"] = name
	return u
}

// start is a Server whose upstreams run until the test ends.
func start(t testing.TB, upstreams ...map[string]any) *bench {
	t.Helper()
	return startAs(t, map[string]any{}, upstreams...)
}

// startAs is start with more keys in the config.
func startAs(t testing.TB, file map[string]any, upstreams ...map[string]any) *bench {
	t.Helper()
	return (&bench{}).startAs(t, file, upstreams...)
}

// startAs starts a bench with more keys in the config.
func (b *bench) startAs(t testing.TB, file map[string]any, upstreams ...map[string]any) *bench {
	t.Helper()
	mcptest.NothingLeft(t)
	file["mcp_servers"] = upstreams
	if upstreams == nil {
		file["mcp_servers"] = []any{}
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(filepath.Join(t.TempDir(), "config.json"), text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	log := zerolog.New(b)
	w := child.NewWatcher(log)
	r := registry.New(&c.Profiles[0], registry.Options{Log: log, Version: "1.2.3", MessageBytes: 8 << 20, ConnectsAtOnce: 4, Watcher: w})
	e := executor.New(r, c, &c.Profiles[0], executor.Options{Log: log, Observers: executor.Observers{b.observe}, Gates: b.gates})
	b.Server = New(&c.Profiles[0], r, e, Options{Log: log, Version: "1.2.3", SetLevel: func(level string) { b.levels = append(b.levels, level) }})
	b.client = client(b.Server)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.Close()
	})
	return b
}

// bare is a Server without upstreams and without anything that runs.
func bare(names ...string) *Server {
	p := &config.Profile{Name: "default", Enabled: true, Expose: config.Lazy}
	for _, name := range names {
		p.Upstreams = append(p.Upstreams, config.Upstream{Name: name})
	}
	c := &config.Config{Profiles: []config.Profile{*p}, Limits: config.Limits{InspectTokens: 4000, ResultTokens: 10_000, ResultHead: 2000, KeptBytes: 1 << 20, WorkBytes: 64 << 20}}
	r := registry.New(p, registry.Options{})
	return New(p, r, executor.New(r, c, p, executor.Options{}), Options{Version: "1.2.3"})
}

// client is one that hears nothing but answers.
func client(s *Server) *Client {
	return s.NewClient("tester", func([]byte) error { return nil })
}

// with adds a method for the time of a test.
func with(t *testing.T, name string, run Method) {
	t.Helper()
	before := maps.Clone(Methods)
	Methods[name] = MethodInfo{Run: run}
	t.Cleanup(func() { Methods = before })
}

// ask has a message handled, and returns the answer.
func (b *bench) ask(t *testing.T, message string) string {
	t.Helper()
	p := Read([]byte(message))
	answered := b.begin(t, message)
	if !p.IsAnswered() {
		return ""
	}
	return string(<-answered)
}

// begin has a message handled. The channel gets the answer.
func (b *bench) begin(t *testing.T, message string) <-chan []byte {
	t.Helper()
	answered := make(chan []byte, 1)
	b.Handle(t.Context(), b.client, Read([]byte(message)), func(answer []byte) { answered <- answer })
	return answered
}

// request is a request with the id 1.
func request(method, params string) string {
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q%s}`, method, params)
}

func result(result string) string { return `{"jsonrpc":"2.0","id":1,"result":` + result + `}` }

func text(text string) string {
	b, _ := json.Marshal(text)
	return result(`{"content":[{"type":"text","text":` + string(b) + `}]}`)
}

func isError(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return result(`{"content":[{"type":"text","text":` + strings.TrimSpace(b.String()) + `}],"isError":true}`)
}

func failure(code int, message, data string) string {
	if data != "" {
		data = `,"data":` + data
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(message)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":%s%s}}`, code, strings.TrimSpace(b.String()), data)
}

const listed = `{"tools":[` +
	`{"name":"inspect","description":"List a server's tools (tool_name \"issue*\" narrows), or get one's schema. Servers: a, mcpx (searches all tools)","inputSchema":{"type":"object","properties":{"server_name":{"type":"string"},"tool_name":{"type":"string"}},"required":["server_name"]},"annotations":{"readOnlyHint":true}},` +
	`{"name":"exec","description":"Call a tool whose signature you know. select returns only some fields and rows: \"id, user.login where state = open limit 20\", \"count where …\", \"/regex/\".","inputSchema":{"type":"object","properties":{"server_name":{"type":"string"},"tool_name":{"type":"string"},"arguments":{"type":"object","additionalProperties":{"type":["string","number","boolean","object","array","null"]}},"select":{"type":"string"}},"required":["server_name","tool_name"]}}]}`

// instructed are the instructions of clients that do not defer tools.
const instructed = `"MCP servers behind two tools, inspect and exec; inspect's description names them."`

// exec is the params of a call to a tool of the server one.
func exec(tool, arguments string) string {
	return `{"name":"exec","arguments":{"server_name":"one","tool_name":"` + tool + `","arguments":` + arguments + `},"_meta":{"progressToken":"tok"}}`
}

// meta is the _meta of a request of 2026-07-28.
func meta(capabilities, more string) string {
	return fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s%s}`, capabilities, more)
}

// talk is a client that has said initialize, and what it is sent.
type talk struct {
	*bench
	sent chan string
}

// connect opens a conversation in a revision with those capabilities.
func (b *bench) connect(t *testing.T, revision, capabilities string) *talk {
	t.Helper()
	c := &talk{bench: b, sent: make(chan string, 1000)}
	b.client = b.NewClient("tester", func(message []byte) error {
		c.sent <- string(message)
		return nil
	})
	b.registry.Attach(b.client)
	answer := b.ask(t, request("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s}`, revision, capabilities)))
	if !strings.Contains(answer, `"protocolVersion":"`+revision+`"`) {
		t.Fatalf("initialize: %s", answer)
	}
	b.ask(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// talk2026 is a client that never says initialize.
func talk2026(t *testing.T, b *bench) *talk {
	t.Helper()
	c := &talk{bench: b, sent: make(chan string, 1000)}
	b.client = b.NewClient("newest", func(message []byte) error {
		c.sent <- string(message)
		return nil
	})
	b.registry.Attach(b.client)
	return c
}

// next is the next message with that part which the client is sent.
func (c *talk) next(t *testing.T, part string) string {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		select {
		case message := <-c.sent:
			if strings.Contains(message, part) {
				return message
			}
		case <-limit:
			t.Fatalf("no message with %s", part)
		}
	}
}

// want checks the answer to a request: the result, or the error object.
func (c *talk) want(t *testing.T, method, params, want string) {
	t.Helper()
	m, err := rpc.Parse([]byte(c.ask(t, request(method, params))))
	if err != nil {
		t.Fatal(err)
	}
	got := string(m.Result)
	if m.Error != nil {
		got = string(m.Error)
	}
	if got != want {
		t.Errorf("%s %s\n got %s\nwant %s", method, params, got, want)
	}
}

// keys are the values of one member of the items of a list.
func (c *talk) keys(t *testing.T, method, list, key string) string {
	t.Helper()
	m, err := rpc.Parse([]byte(c.ask(t, request(method, ""))))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for item := range rawjson.Elements(rawjson.Get(m.Result, list)) {
		text, _ := rawjson.String(rawjson.Get(item, key))
		keys = append(keys, text)
	}
	return strings.Join(keys, " ")
}

// two is a bench with two upstreams that are ready: some lists wait for that, but
// not for as long as it may take.
func two(t *testing.T) *bench {
	t.Helper()
	b := start(t, newUpstream(t, "one", "-full", "-name", "one"), newUpstream(t, "two", "-full", "-name", "two"))
	for _, name := range []string{"one", "two"} {
		b.registry.Settled(t.Context(), name)
	}
	return b
}
