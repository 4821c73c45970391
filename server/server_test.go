package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

func TestHandle(t *testing.T) {
	b := start(t, newUpstream(t, "a"))
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
		{"mcpx's own", call(`{"name":"schema"}`), failure(-32601, `Tool 'schema' not found; call it with the tool exec: {"server_name":"mcpx","tool_name":"schema","arguments":{…}}`, `{"tool":"schema"}`)},

		{"inspect", call(`{"name":"inspect","arguments":{"server_name":"a","tool_name":"pid"}}`), text(`{"name":"pid","description":"The server's process id","inputSchema":{"type":"object"}}`)},
		{"inspect nothing", call(`{"name":"inspect"}`), isError("server_name: required; servers: a, mcpx")},
		{"inspect null", call(`{"name":"inspect","arguments":null}`), isError("server_name: required; servers: a, mcpx")},
		{"inspect an unknown server", call(`{"name":"inspect","arguments":{"server_name":"b"}}`), isError(`unknown server "b"; servers: a, mcpx`)},
		{"exec", call(`{"name":"exec","arguments":{"server_name":"a","tool_name":"echo","arguments":{"text":"<hi>"}}}`), result(`{"content":[{"type":"text","text":"\u003chi\u003e"}]}`)},
		{"exec, repaired", call(`{"name":"exec","arguments":{"tool_name":"a.echo","text":"hi"}}`), text("hi")},
		{"exec, bytes", call(`{"name":"exec","arguments":{"server_name":"a","tool_name":"raw","arguments":{"result":{"x": 9007199254740993 }}}}`), result(`{"x": 9007199254740993 }`)},
		{"exec nothing", call(`{"name":"exec"}`), isError("server_name: required; servers: a, mcpx")},
		{"exec an unknown server", call(`{"name":"exec","arguments":{"server_name":"b","tool_name":"echo"}}`), isError(`unknown server "b"; servers: a, mcpx`)},
		{"exec, invalid", call(`{"name":"exec","arguments":{"server_name":"a","tool_name":"echo"}}`), isError("arguments.text: required\necho(text: string, …)")},
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

// TestWrongTypesInParams: params that mcp-go refuses get -32602, with nothing about Go
// in the message.
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

func TestAPanicCostsOneRequest(t *testing.T) {
	b := start(t)
	with(t, "test/panic", func(*Server, context.Context, *Client, rpc.Message) ([]byte, error) { panic("on purpose") })
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
		failure(-5, "no", `{"a": 1}`):        &rpc.Error{Code: -5, Message: "no", Data: []byte(`{"a": 1}`)},
		failure(-6, "wrapped", `[]`):         fmt.Errorf("in: %w", &rpc.Error{Code: -6, Message: "wrapped", Data: []byte(`[]`)}),
		failure(-32603, "a\nb\u001b<c>", ""): errors.New("a\nb\x1b<c>"),
	} {
		with(t, "test/fail", func(*Server, context.Context, *Client, rpc.Message) ([]byte, error) { return nil, err })
		if got := b.ask(t, request("test/fail", "")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestRevisions: initialize responds with each revision that mcpx lists.
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

// TestKeysGivenTwice: in every envelope a key must match exactly and occur once, so
// that no two readers see different requests.
func TestKeysGivenTwice(t *testing.T) {
	b := start(t, newUpstream(t, "a", "-full"))
	b.ask(t, request("tools/call", `{"name":"inspect","arguments":{"server_name":"a"}}`)) // it is ready then
	twice := func(key string) string {
		detail := `"` + key + `" is given twice`
		data, _ := json.Marshal(map[string]string{"detail": detail})
		return failure(-32602, "Invalid params: "+detail, string(data))
	}
	invalid := func(key string) string {
		message, _ := json.Marshal("Invalid request: \"" + key + "\" is given twice")
		return `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":` + string(message) + `}}`
	}
	const echo = `{"server_name":"a","tool_name":"echo","arguments":{"text":"x"}}`
	for _, row := range []struct{ name, ask, want string }{
		{"method", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, invalid("method")},
		{"method, once escaped", `{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/list"}`, invalid("method")},
		{"id", `{"jsonrpc":"2.0","id":2,"id":1,"method":"ping"}`, invalid("id")},
		{"params", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}`, invalid("params")},
		{"jsonrpc", `{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"ping"}`, invalid("jsonrpc")},
		{"Method", `{"jsonrpc":"2.0","id":1,"Method":"tools/list","method":"ping"}`, result(`{}`)},
		{"METHOD alone", `{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`, failure(-32600, `Invalid request: no "method"`, "")},
		{"Id", `{"jsonrpc":"2.0","id":1,"Id":7,"method":"ping"}`, result(`{}`)},
		{"Params", `{"jsonrpc":"2.0","id":1,"method":"ping","Params":[],"params":{}}`, result(`{}`)},

		{"name", request("tools/call", `{"name":"inspect","name":"exec","arguments":`+echo+`}`), twice("name")},
		{"Name", request("tools/call", `{"name":"exec","Name":"inspect","arguments":`+echo+`}`), text("x")},
		{"arguments", request("tools/call", `{"name":"exec","arguments":{},"arguments":`+echo+`}`), twice("arguments")},
		{"Arguments", request("tools/call", `{"name":"exec","arguments":`+echo+`,"Arguments":{}}`), text("x")},
		{"_meta", request("tools/call", `{"name":"exec","arguments":`+echo+`,"_meta":{},"_meta":{}}`), twice("_meta")},
		{"in _meta", request("tools/call", `{"name":"exec","arguments":`+echo+`,"_meta":{"progressToken":1,"progressToken":2}}`), twice("_meta.progressToken")},
		{"initialize", request("initialize", `{"protocolVersion":"2025-06-18","protocolVersion":"2024-11-05"}`), twice("protocolVersion")},
		{"prompts/get", request("prompts/get", `{"name":"a__plain","name":"a__needs"}`), twice("name")},
		{"prompts/get arguments", request("prompts/get", `{"name":"a__needs","arguments":{"context":"x","context":""}}`), twice("arguments.context")},
		{"resources/read", request("resources/read", `{"uri":"test://one","uri":"own://test"}`), twice("uri")},
		{"completion", request("completion/complete", `{"ref":{"type":"ref/prompt","type":"ref/resource","name":"a__needs"},"argument":{}}`), twice("ref.type")},

		{"exec, server_name", request("tools/call", `{"name":"exec","arguments":{"server_name":"b","server_name":"a","tool_name":"echo","arguments":{"text":"x"}}}`), isError(`"server_name" is given twice`)},
		{"exec, tool_name", request("tools/call", `{"name":"exec","arguments":{"server_name":"a","tool_name":"pid","tool_name":"echo","arguments":{"text":"x"}}}`), isError(`"tool_name" is given twice`)},
		{"exec, arguments", request("tools/call", `{"name":"exec","arguments":{"server_name":"a","tool_name":"echo","arguments":{},"arguments":{"text":"x"}}}`), isError(`"arguments" is given twice`)},
		{"exec, inside arguments", request("tools/call", `{"name":"exec","arguments":{"server_name":"a","tool_name":"arguments","arguments":{"path":"/tmp","path":"/etc"}}}`), isError("arguments.path: given twice\narguments()")},
		{"exec, Arguments", request("tools/call", `{"name":"exec","arguments":{"server_name":"a","tool_name":"arguments","arguments":{"path":"/tmp","Path":"/etc"}}}`), text(`{"path":"/tmp","Path":"/etc"}`)},
		{"inspect, server_name", request("tools/call", `{"name":"inspect","arguments":{"server_name":"a","server_name":"mcpx"}}`), isError(`"server_name" is given twice`)},
	} {
		if got := b.ask(t, row.ask); got != row.want {
			t.Errorf("%s: %s\n got %s\nwant %s", row.name, row.ask, got, row.want)
		}
	}
}

// TestInitializeIsExact: a key with another case does not count.
func TestInitializeIsExact(t *testing.T) {
	b := start(t)
	got := b.ask(t, request("initialize", `{"protocolVersion":"2025-06-18","PROTOCOLVERSION":"2024-11-05","ClientInfo":5}`))
	if want := `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18",`; len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("got %s, want %s…", got, want)
	}
}

// TestAllocationsOfACall counts what a relayed call takes from the heap, from the client's
// line to the answer, on both sides of mcpx and in all its goroutines. Whoever
// changes the path of a call and needs more changes these numbers, and says why.
func TestAllocationsOfACall(t *testing.T) {
	b := start(t, newUpstream(t, "one"))
	client := b.NewClient("one", func([]byte) error { return nil })
	answers := make(chan []byte, 1)
	reply := func(answer []byte) { answers <- answer }
	for _, row := range []struct {
		revision, meta string
		want           float64
	}{
		{"2025-11-25", "", 17},
		{"2026-07-28", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}},`, 28}, // the state of a call that may take several rounds
	} {
		line := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + row.meta + `"name":"exec","arguments":{"server_name":"one","tool_name":"echo","arguments":{"text":"hello"}}}}`)
		call := func() {
			b.Handle(context.Background(), client, Read(line), reply)
			if result := rawjson.Get(<-answers, "result"); rawjson.Get(result, "isError") != nil || result == nil {
				t.Fatalf("result %s", result)
			}
		}
		call() // it waits until the upstream is ready
		if got := testing.AllocsPerRun(500, call); got > row.want {
			t.Errorf("a call of %s takes %v allocations, want at most %v", row.revision, got, row.want)
		}
	}
}

// TestAPanicCostsOneCall: the goroutine that reads all messages survives a panic in a
// call.
func TestAPanicCostsOneCall(t *testing.T) {
	s := bare("one")
	s.executor = executor.New(nil, &config.Config{}, &config.Profile{}, executor.Options{}) // without a registry, so that the call panics
	var answers []string
	line := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"one","tool_name":"echo","arguments":{}}}}`)
	s.Handle(t.Context(), client(s), Read(line), func(answer []byte) { answers = append(answers, string(answer)) })
	want := `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"internal error in a call of echo"}],"isError":true}}`
	if len(answers) != 1 || answers[0] != want {
		t.Errorf("answers %q", answers)
	}
}

// TestARequestToAClientThatLeft: the error does not say that the upstream's connection
// is closed, or the call that needs the answer would be sent again.
func TestARequestToAClientThatLeft(t *testing.T) {
	c := client(bare())
	c.SetInitialized("2025-06-18", []byte(`{"roots":{}}`))
	c.markReachable()
	c.Conn.Close(errors.New("it left"))
	if _, err := c.Request(t.Context(), "roots/list", nil); err == nil || errors.Is(err, rpc.ErrClosed) {
		t.Errorf("error %v", err)
	}
}
