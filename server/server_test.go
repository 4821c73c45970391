package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/child"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/mcptest"
	"mcpx/registry"
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

// upstream is an entry of mcp_servers.
func upstream(t testing.TB, name string, flags ...string) map[string]any {
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
	b := &bench{}
	log := zerolog.New(b)
	w := child.NewWatcher(log)
	r := registry.New(&c.Profiles[0], registry.Options{Log: log, Version: "1.2.3", MessageBytes: 8 << 20, ConnectsAtOnce: 4, Watcher: w})
	e := executor.New(r, c, &c.Profiles[0], executor.Options{Log: log, Observe: b.observe})
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
	c := &config.Config{Profiles: []config.Profile{*p}, Limits: config.Limits{InspectTokens: 4000, ResultTokens: 20_000}}
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
	Methods[name] = run
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
	`{"name":"inspect","description":"List a server's tools, or get one's schema. Servers: a, mcpx","inputSchema":{"type":"object","properties":{"server_name":{"type":"string"},"tool_name":{"type":"string"}},"required":["server_name"]},"annotations":{"readOnlyHint":true}},` +
	`{"name":"exec","description":"Call a tool. Inspect it first.","inputSchema":{"type":"object","properties":{"server_name":{"type":"string"},"tool_name":{"type":"string"},"arguments":{"type":"object","properties":{},"additionalProperties":true}},"required":["server_name","tool_name"]}}]}`

// instructed are the instructions in front of one upstream, a.
const instructed = `"MCP servers behind two tools: a. inspect(server_name) lists a server's tools, exec calls one. exec(\"mcpx\", \"search\", {\"query\": …}) searches the tools of all servers."`

func TestHandle(t *testing.T) {
	b := start(t, upstream(t, "a"))
	b.ask(t, request("tools/call", `{"name":"inspect","arguments":{"server_name":"a"}}`)) // it is ready then
	hello := func(version string) string { return request("initialize", `{"protocolVersion":`+version+`}`) }
	welcome := func(version string) string {
		return result(`{"protocolVersion":"` + version + `","capabilities":{"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"completions":{}},"serverInfo":{"name":"mcpx","version":"1.2.3"},"instructions":` + instructed + `}`)
	}
	badParams := func(detail string) string {
		data, _ := json.Marshal(map[string]string{"detail": detail})
		return failure(-32602, "Invalid params: "+detail, string(data))
	}
	badLevel := func(level string) string {
		return failure(-32603, "Invalid log level: "+level+". Valid levels are: debug, info, warn, error", "")
	}
	const levels = `{"_meta":{"success":true,"level":"%s","message":"Log level set to %[1]s"}}`
	call := func(params string) string { return request("tools/call", params) }
	for _, row := range []struct{ name, ask, want string }{
		{"initialize, oldest", hello(`"2024-11-05"`), welcome("2024-11-05")},
		{"initialize", hello(`"2025-03-26"`), welcome("2025-03-26")},
		{"initialize", hello(`"2025-06-18"`), welcome("2025-06-18")},
		{"initialize, newest", hello(`"2025-11-25"`), welcome("2025-11-25")},
		{"initialize, newer", hello(`"2099-01-01"`), welcome("2025-11-25")},
		{"initialize, a draft", hello(`"DRAFT-2026-v1"`), welcome("2025-11-25")},
		{"initialize, too old", hello(`"2024-10-07"`), failure(-32000, "Unsupported protocol version: 2024-10-07", "")},
		{"initialize, no date", hello(`"1.0"`), failure(-32000, "Unsupported protocol version: 1.0", "")},
		{"initialize, empty", hello(`""`), failure(-32000, "Unsupported protocol version: ", "")},
		{"initialize, a number", hello(`5`), badParams(`"protocolVersion" must be a string`)},
		{"initialize, no params", request("initialize", ""), badParams(`"protocolVersion" must be a string`)},

		{"ping", request("ping", ""), result(`{}`)},
		{"ping with params", request("ping", `{"x":1}`), result(`{}`)},
		{"tools/list", request("tools/list", ""), result(listed)},
		{"tools/list with params", request("tools/list", `{}`), result(listed)},
		{"shutdown", request("shutdown", ""), result(`{}`)},

		{"unknown method", request("nope", ""), failure(-32601, "Method 'nope' not found", "")},
		{"unknown method with quotes", request("no'\\pe", `{}`), failure(-32601, "Method 'no'\\pe' not found", "")},
		{"sampling is not for clients to ask", request("sampling/createMessage", `{}`), failure(-32601, "Method 'sampling/createMessage' not found", "")},
		{"elicitation neither", request("elicitation/create", `{}`), failure(-32601, "Method 'elicitation/create' not found", "")},
		{"Methods are exact", request("Ping", ""), failure(-32601, "Method 'Ping' not found", "")},

		{"params of another type", request("tools/list", `[1]`), badParams(`"params" must be an object`)},
		{"params of another type, unknown method", request("nope", `[1]`), failure(-32601, "Method 'nope' not found", "")},
		{"call without params", request("tools/call", ""), badParams(`"name" must be the name of a tool`)},
		{"call without a name", call(`{}`), badParams(`"name" must be the name of a tool`)},
		{"call with an empty name", call(`{"name":""}`), badParams(`"name" must be the name of a tool`)},
		{"call with a number", call(`{"name":5}`), badParams(`"name" must be the name of a tool`)},
		{"keys are exact", call(`{"Name":"exec"}`), badParams(`"name" must be the name of a tool`)},
		{"arguments of another type", call(`{"name":"exec","arguments":[]}`), badParams(`"arguments" must be an object`)},
		{"arguments of another type", call(`{"name":"inspect","arguments":"x"}`), badParams(`"arguments" must be an object`)},

		{"not listed", call(`{"name":"nope"}`), failure(-32601, "Tool 'nope' not found", `{"tool":"nope"}`)},
		{"not listed, hostile", call(`{"name":"a\"\n"}`), failure(-32601, "Tool 'a\"\n' not found", `{"tool":"a\"\n"}`)},
		{"an upstream's", call(`{"name":"echo","arguments":{"text":"x"}}`), failure(-32601, `Tool 'echo' not found; call it with the tool exec: {"server_name":"a","tool_name":"echo","arguments":{…}}`, `{"tool":"echo"}`)},
		{"an upstream's, flat", call(`{"name":"a__echo"}`), failure(-32601, `Tool 'a__echo' not found; call it with the tool exec: {"server_name":"a","tool_name":"echo","arguments":{…}}`, `{"tool":"a__echo"}`)},
		{"mcpx's own", call(`{"name":"search"}`), failure(-32601, `Tool 'search' not found; call it with the tool exec: {"server_name":"mcpx","tool_name":"search","arguments":{…}}`, `{"tool":"search"}`)},

		{"inspect", call(`{"name":"inspect","arguments":{"server_name":"a","tool_name":"pid"}}`), text(`{"name":"pid","description":"The server's process id","inputSchema":{"type":"object"}}`)},
		{"inspect nothing", call(`{"name":"inspect"}`), isError("server_name: required; servers: a, mcpx")},
		{"inspect null", call(`{"name":"inspect","arguments":null}`), isError("server_name: required; servers: a, mcpx")},
		{"inspect an unknown server", call(`{"name":"inspect","arguments":{"server_name":"b"}}`), isError(`unknown server "b"; servers: a, mcpx`)},
		{"exec", call(`{"name":"exec","arguments":{"server_name":"a","tool_name":"echo","arguments":{"text":"<hi>"}}}`), result(`{"content":[{"type":"text","text":"\u003chi\u003e"}]}`)},
		{"exec, repaired", call(`{"name":"exec","arguments":{"tool_name":"a.echo","text":"hi"}}`), text("hi")},
		{"exec, bytes", call(`{"name":"exec","arguments":{"server_name":"a","tool_name":"raw","arguments":{"result":{"x": 9007199254740993 }}}}`), result(`{"x": 9007199254740993 }`)},
		{"exec nothing", call(`{"name":"exec"}`), isError("server_name: required; servers: a, mcpx")},
		{"exec an unknown server", call(`{"name":"exec","arguments":{"server_name":"b","tool_name":"echo"}}`), isError(`unknown server "b"; servers: a, mcpx`)},
		{"exec, invalid", call(`{"name":"exec","arguments":{"server_name":"a","tool_name":"echo"}}`), isError("arguments.text: required\necho(text: string, times?: integer /*>=1*/)")},
		{"exec, the upstream's error", call(`{"name":"exec","arguments":{"server_name":"a","tool_name":"fail"}}`), isError("server \"a\" answered with error -32042: it did not work\ndata: {\"detail\":9007199254740993}")},
		{"exec, the upstream's error, the name put right", call(`{"name":"exec","arguments":{"tool_name":"a__fail"}}`), isError("server \"a\" answered with error -32042: it did not work\ndata: {\"detail\":9007199254740993}")},

		{"setLevel", request("logging/setLevel", `{"level":"debug"}`), result(fmt.Sprintf(levels, "debug"))},
		{"setLevel", request("logging/setLevel", `{"level":"info"}`), result(fmt.Sprintf(levels, "info"))},
		{"setLevel", request("logging/setLevel", `{"level":"notice"}`), result(fmt.Sprintf(levels, "notice"))},
		{"setLevel", request("logging/setLevel", `{"level":"warn"}`), result(fmt.Sprintf(levels, "warn"))},
		{"setLevel", request("logging/setLevel", `{"level":"warning"}`), result(fmt.Sprintf(levels, "warning"))},
		{"setLevel", request("logging/setLevel", `{"level":"error"}`), result(fmt.Sprintf(levels, "error"))},
		{"setLevel", request("logging/setLevel", `{"level":"critical"}`), result(fmt.Sprintf(levels, "critical"))},
		{"setLevel", request("logging/setLevel", `{"level":"alert"}`), result(fmt.Sprintf(levels, "alert"))},
		{"setLevel", request("logging/setLevel", `{"level":"emergency"}`), result(fmt.Sprintf(levels, "emergency"))},
		{"setLevel, unknown", request("logging/setLevel", `{"level":"loud"}`), badLevel("loud")},
		{"setLevel, another case", request("logging/setLevel", `{"level":"DEBUG"}`), badLevel("DEBUG")},
		{"setLevel, empty", request("logging/setLevel", `{"level":""}`), badLevel("")},
		{"setLevel, null", request("logging/setLevel", `{"level":null}`), badLevel("null")},
		{"setLevel, a number", request("logging/setLevel", `{"level":5}`), badLevel("5")},
		{"setLevel, missing", request("logging/setLevel", `{}`), badLevel("undefined")},
		{"setLevel, no params", request("logging/setLevel", ""), badLevel("undefined")},

		{"a notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"notifications/nope","params":[1]}`, ""},
		{"a request as a notification", `{"jsonrpc":"2.0","method":"tools/list"}`, ""},
		{"a cancellation of nothing", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`, ""},
		{"an answer to nothing", `{"jsonrpc":"2.0","id":1,"result":{}}`, ""},
		{"an error to nothing", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`, ""},
	} {
		if got := b.ask(t, row.ask); got != row.want {
			t.Errorf("%s: %s\n got %s\nwant %s", row.name, row.ask, got, row.want)
		}
	}
	if got, want := strings.Join(b.levels, " "), "debug info info warn warn error error error error"; got != want {
		t.Errorf("mcpx's own log was set to %s, want %s", got, want)
	}
}

// What mcp-go refuses is an error of the same form as any other: -32602, and
// nothing of Go in it.
func TestWrongTypesInParams(t *testing.T) {
	b := start(t)
	for _, ask := range []string{
		request("initialize", `{"protocolVersion":"2025-06-18","capabilities":5}`),
		request("initialize", `{"protocolVersion":"2025-06-18","clientInfo":"x"}`),
		request("tools/list", `{"cursor":5}`),
		request("tools/list", `{"cursor":"x"}`),
	} {
		got := b.ask(t, ask)
		if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: `) || !strings.Contains(got, `"data":{`) || strings.Contains(got, "Go struct") {
			t.Errorf("%s\n got %s\nwant -32602 Invalid params: …, with data", ask, got)
		}
	}
}

func TestIDsAreEchoedAsTheyCame(t *testing.T) {
	b := start(t)
	for _, id := range []string{`1`, `0`, `-5`, `9007199254740993`, `123456789012345678901234567890`, `1.50`, `1e3`, `""`, `"a"`, `"\u0061\n"`, `"é"`} {
		got := b.ask(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
		if want := `{"jsonrpc":"2.0","id":` + id + `,"result":{}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestUnavailableServersAreResults(t *testing.T) {
	slow := upstream(t, "slow")
	slow["timeout"] = 0.05
	b := start(t, upstream(t, "exits", "-exit", "3", "-stderr", "no API key"), slow, upstream(t, "a"))
	for ask, want := range map[string]string{
		`{"name":"exec","arguments":{"server_name":"exits","tool_name":"x"}}`:                          `server "exits" is unavailable: exited with status 3; next try in [0-9]+s\nlast lines of its stderr:\n  no API key`,
		`{"name":"inspect","arguments":{"server_name":"exits"}}`:                                       `server "exits" is unavailable: exited with status 3; next try in [0-9]+s\nlast lines of its stderr:\n  no API key`,
		`{"name":"exec","arguments":{"server_name":"slow","tool_name":"sleep","ms":60000}}`:            `server "slow": timed out: no answer and no progress within 50ms \(its "timeout"\); the call was cancelled`,
		`{"name":"exec","arguments":{"server_name":"a","tool_name":"crash","arguments":{"status":7}}}`: `server "a" stopped during the call: exited with status 7; whether the call took effect is unknown, and mcpx does not repeat it`,
	} {
		var answer struct {
			Result struct {
				IsError bool
				Content []struct{ Text string }
			}
		}
		got := b.ask(t, request("tools/call", ask))
		if err := json.Unmarshal([]byte(got), &answer); err != nil || !answer.Result.IsError || len(answer.Result.Content) != 1 ||
			!regexp.MustCompile("^"+want+"$").MatchString(answer.Result.Content[0].Text) {
			t.Errorf("%s\n got %s\nwant %s", ask, got, want)
		}
	}
}

func TestAPanicCostsOneRequest(t *testing.T) {
	b := start(t)
	with(t, "test/panic", func(*Server, context.Context, *Client, jsonrpc.Message) ([]byte, error) { panic("on purpose") })
	if got, want := b.ask(t, request("test/panic", "")), failure(-32603, "internal error in test/panic", ""); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := b.ask(t, request("ping", "")), result("{}"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if log := b.log.String(); !strings.Contains(log, `"method":"test/panic","panic":"on purpose"`) {
		t.Errorf("the log is %s", log)
	}
}

func TestErrorsKeepTheirCode(t *testing.T) {
	b := start(t)
	for want, err := range map[string]error{
		failure(-32603, "went wrong", ""):    errors.New("went wrong"),
		failure(-5, "no", `{"a": 1}`):        &jsonrpc.Error{Code: -5, Message: "no", Data: []byte(`{"a": 1}`)},
		failure(-6, "wrapped", `[]`):         fmt.Errorf("in: %w", &jsonrpc.Error{Code: -6, Message: "wrapped", Data: []byte(`[]`)}),
		failure(-32603, "a\nb\u001b<c>", ""): errors.New("a\nb\x1b<c>"),
	} {
		with(t, "test/fail", func(*Server, context.Context, *Client, jsonrpc.Message) ([]byte, error) { return nil, err })
		if got := b.ask(t, request("test/fail", "")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A cancelled call is not answered, the upstream is told, and the call counts
// as cancelled.
func TestCancellation(t *testing.T) {
	b := start(t, upstream(t, "a"))
	b.ask(t, request("tools/call", `{"name":"inspect","arguments":{"server_name":"a"}}`))
	for _, id := range []string{`7`, `"7"`, `"a b"`} {
		answered := make(chan string, 1)
		go func() {
			answered <- b.ask(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"a","tool_name":"sleep","arguments":{"ms":60000}}}}`)
		}()
		for b.inFlight() == 0 {
			<-time.After(time.Millisecond)
		}
		b.ask(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"other"}}`)
		b.ask(t, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		b.ask(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"enough"}}`)
		select {
		case got := <-answered:
			if got != "" {
				t.Errorf("%s was answered: %s", id, got)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s was not cancelled", id)
		}
		if n := b.inFlight(); n != 0 {
			t.Errorf("%d calls are in flight after the end", n)
		}
	}
	if got := b.outcomes(); !maps.Equal(got, map[string]int{"cancelled": 3}) {
		t.Errorf("outcomes %v, want 3 cancelled", got)
	}
}

// inFlight is how many requests the client could cancel.
func (b *bench) inFlight() int {
	return b.client.Conn.Incoming()
}

// A second request with the id of one in flight does not take its place away.
func TestTwoRequestsWithOneID(t *testing.T) {
	c := client(bare())
	first, _ := c.Conn.Begin(t.Context(), []byte("1"), 0)
	second, _ := c.Conn.Begin(t.Context(), []byte("1"), 0)
	first.End()
	c.Conn.Receive(jsonrpc.Message{Method: "notifications/cancelled", Params: []byte(`{"requestId":1}`)}, nil)
	if !errors.Is(context.Cause(second), ErrCancelled) {
		t.Errorf("the second request was not cancelled: %v", context.Cause(second))
	}
	second.End()
	if n := c.Conn.Incoming(); first.Err() == nil || n != 0 {
		t.Errorf("%v, %d left", first.Err(), n)
	}
}

// TestARequestToAClientThatLeft: the error does not say that the upstream's connection
// is closed, or the call that needs the answer would be sent again.
func TestARequestToAClientThatLeft(t *testing.T) {
	c := client(bare())
	c.SetInitialized("2025-06-18", []byte(`{"roots":{}}`))
	c.markReachable()
	c.Conn.Close(errors.New("it left"))
	if _, err := c.Request(t.Context(), "roots/list", nil); err == nil || errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// What is said to be spoken is: initialize answers with the same revision, and
// the one that has no initialize is discovered.
func TestRevisions(t *testing.T) {
	b := start(t)
	if got, want := strings.Join(Revisions(), " "), "2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28"; got != want {
		t.Errorf("revisions %s, want %s", got, want)
	}
	for _, revision := range Revisions()[:4] {
		got := b.ask(t, request("initialize", `{"protocolVersion":"`+revision+`"}`))
		if want := `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"` + revision + `",`; !strings.HasPrefix(got, want) {
			t.Errorf("got %s, want %s…", got, want)
		}
	}
}
