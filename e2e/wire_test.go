package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestErrorsOnTheWire compares whole error objects. want is one, or "" for what
// must have a result.
func TestErrorsOnTheWire(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t), "b": mcptest.Upstream(t)})
	p.initialize()
	p.inspect("a", "") // its tools are known from here on
	p.inspect("b", "")
	const call = `{"server_name":"a","tool_name":"echo"`
	const level = `Invalid log level: %s. Valid levels are: debug, info, warn, error`
	invalid := func(detail string) string {
		return fmt.Sprintf(`{"code":-32602,"message":%s,"data":{"detail":%s}}`, quote("Invalid params: "+detail), quote(detail))
	}
	for _, c := range []struct{ name, method, params, want string }{
		{"unknown method", "foo/bar", `{}`, `{"code":-32601,"message":"Method 'foo/bar' not found"}`},
		{"unknown method with odd letters", `it's "odd"`, ``, `{"code":-32601,"message":"Method 'it's \"odd\"' not found"}`},
		{"a method in other case", "Tools/List", `{}`, `{"code":-32601,"message":"Method 'Tools/List' not found"}`},
		{"sampling from a client", "sampling/createMessage", `{}`, `{"code":-32601,"message":"Method 'sampling/createMessage' not found"}`},
		{"elicitation from a client", "elicitation/create", `{}`, `{"code":-32601,"message":"Method 'elicitation/create' not found"}`},

		{"a tool nobody has", "tools/call", `{"name":"nothing"}`, `{"code":-32601,"message":"Tool 'nothing' not found","data":{"tool":"nothing"}}`},
		{"a tool an upstream has", "tools/call", `{"name":"echo","arguments":{"text":"x"}}`,
			`{"code":-32601,"message":"Tool 'echo' not found; call it with the tool exec: {\"server_name\":\"a\",\"tool_name\":\"echo\",\"arguments\":{…}}","data":{"tool":"echo"}}`},
		{"a tool by its flat name", "tools/call", `{"name":"b__pid"}`,
			`{"code":-32601,"message":"Tool 'b__pid' not found; call it with the tool exec: {\"server_name\":\"b\",\"tool_name\":\"pid\",\"arguments\":{…}}","data":{"tool":"b__pid"}}`},
		{"a built-in tool", "tools/call", `{"name":"search"}`,
			`{"code":-32601,"message":"Tool 'search' not found; call it with the tool exec: {\"server_name\":\"mcpx\",\"tool_name\":\"search\",\"arguments\":{…}}","data":{"tool":"search"}}`},
		{"a tool in other case", "tools/call", `{"name":"Exec"}`, `{"code":-32601,"message":"Tool 'Exec' not found","data":{"tool":"Exec"}}`},

		{"no name", "tools/call", `{}`, invalid(`"name" must be the name of a tool`)},
		{"no params", "tools/call", ``, invalid(`"name" must be the name of a tool`)},
		{"an empty name", "tools/call", `{"name":""}`, invalid(`"name" must be the name of a tool`)},
		{"a name that is null", "tools/call", `{"name":null}`, invalid(`"name" must be the name of a tool`)},
		{"a name that is a number", "tools/call", `{"name":5,"arguments":{}}`, invalid(`"name" must be the name of a tool`)},
		{"a name in other case", "tools/call", `{"Name":"exec","arguments":` + call + `}}`, invalid(`"name" must be the name of a tool`)},
		{"arguments that are an array", "tools/call", `{"name":"exec","arguments":[]}`, invalid(`"arguments" must be an object`)},
		{"arguments that are a text", "tools/call", `{"name":"exec","arguments":"x"}`, invalid(`"arguments" must be an object`)},
		{"arguments that are a number", "tools/call", `{"name":"inspect","arguments":1}`, invalid(`"arguments" must be an object`)},
		{"params that are an array", "tools/call", `["exec"]`, invalid(`"params" must be an object`)},
		{"params that are a text", "tools/list", `"x"`, invalid(`"params" must be an object`)},
		{"params that are a number", "ping", `1`, invalid(`"params" must be an object`)},

		{"an invalid level", "logging/setLevel", `{"level":"loud"}`, fmt.Sprintf(`{"code":-32603,"message":"`+level+`"}`, "loud")},
		{"a level in other case", "logging/setLevel", `{"level":"DEBUG"}`, fmt.Sprintf(`{"code":-32603,"message":"`+level+`"}`, "DEBUG")},
		{"no level", "logging/setLevel", `{}`, fmt.Sprintf(`{"code":-32603,"message":"`+level+`"}`, "undefined")},
		{"no params for a level", "logging/setLevel", ``, fmt.Sprintf(`{"code":-32603,"message":"`+level+`"}`, "undefined")},
		{"a level that is null", "logging/setLevel", `{"level":null}`, fmt.Sprintf(`{"code":-32603,"message":"`+level+`"}`, "null")},
		{"an empty level", "logging/setLevel", `{"level":""}`, fmt.Sprintf(`{"code":-32603,"message":"`+level+`"}`, "")},
		{"a level that is a number", "logging/setLevel", `{"level":5}`, fmt.Sprintf(`{"code":-32603,"message":"`+level+`"}`, "5")},

		{"an old version", "initialize", `{"protocolVersion":"2024-10-07","capabilities":{},"clientInfo":{"name":"e","version":"1"}}`, `{"code":-32000,"message":"Unsupported protocol version: 2024-10-07"}`},
		{"a version from before there were dates", "initialize", `{"protocolVersion":"1.0","capabilities":{},"clientInfo":{"name":"e","version":"1"}}`, `{"code":-32000,"message":"Unsupported protocol version: 1.0"}`},
		{"no version", "initialize", `{}`, invalid(`"protocolVersion" must be a string`)},
		{"a version that is a number", "initialize", `{"protocolVersion":20251125}`, invalid(`"protocolVersion" must be a string`)},
		{"initialize without params", "initialize", ``, invalid(`"protocolVersion" must be a string`)},

		{"arguments that are null", "tools/call", `{"name":"exec","arguments":null}`, ``},
		{"no arguments", "tools/call", `{"name":"inspect"}`, ``},
		{"unknown members", "tools/call", `{"name":"exec","arguments":` + call + `},"task":{},"_meta":{"progressToken":"x"}}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := p.request(c.method, c.params)
			if string(m.Error) != c.want {
				t.Errorf("got %s%s\nwant %s", m.Result, m.Error, c.want)
			}
		})
	}
}

// TestWrongTypesInParams: whoever reads a method's params, what is wrong in them
// is said in the same way.
func TestWrongTypesInParams(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	for _, c := range []struct{ name, method, params string }{
		{"capabilities", "initialize", `{"protocolVersion":"2025-11-25","capabilities":[],"clientInfo":{"name":"e","version":"1"}}`},
		{"clientInfo", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":5}`},
		{"cursor", "tools/list", `{"cursor":5}`},
		{"unknown cursor", "tools/list", `{"cursor":"no such page"}`},
		{"_meta", "tools/list", `{"_meta":5}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got struct {
				Code    int             `json:"code"`
				Message string          `json:"message"`
				Data    json.RawMessage `json:"data"`
			}
			m := p.request(c.method, c.params)
			_ = json.Unmarshal(m.Error, &got)
			if got.Code != -32602 || !strings.HasPrefix(got.Message, "Invalid params: ") || got.Data == nil || strings.Contains(got.Message, "Go ") {
				t.Errorf("got %s%s, want -32602 Invalid params: …, with data and in words of MCP", m.Result, m.Error)
			}
		})
	}
}

func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

func TestLogLevels(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.initialize()
	for _, level := range []string{"debug", "info", "notice", "warn", "warning", "error", "critical", "alert", "emergency"} {
		want := fmt.Sprintf(`{"_meta":{"success":true,"level":%q,"message":"Log level set to %s"}}`, level, level)
		if got := p.result("logging/setLevel", fmt.Sprintf(`{"level":%q}`, level)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	// The level is that of mcpx's own log too, which has a line a call at info.
	p.exec("a", "echo", `{"text":"not logged"}`)
	p.result("logging/setLevel", `{"level":"info"}`)
	p.exec("a", "pid", "")
	p.waitStderr("tool=pid")
	if log := p.errors(); strings.Contains(log, "tool=echo") {
		t.Errorf("at level emergency a call was logged:\n%s", log)
	}
}

// TestLines sends what is no request, one line at a time. Each answer has a null
// id, or the one that could be read, and the connection lives on.
func TestLines(t *testing.T) {
	t.Parallel()
	config := map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t)}, "limits": map[string]any{"message_bytes": 100_000}}
	p := start(t, config, options{})
	p.initialize()
	long := `{"jsonrpc":"2.0","id":"long","method":"ping","params":{"pad":"` + strings.Repeat("x", 100_000) + `"}}`
	deep := `{"jsonrpc":"2.0","id":"deep","method":"ping","params":{"a":` + strings.Repeat("[", 40_000) + strings.Repeat("]", 40_000) + `}}`
	for i, c := range []struct {
		name, line, id string // id "" is no answer
		code           int
	}{
		{"not JSON", `hello`, `null`, -32700},
		{"half an object", `{"jsonrpc":"2.0","id":1,"method":"pi`, `null`, -32700},
		{"two objects", `{"jsonrpc":"2.0","id":"two","method":"ping"}{"jsonrpc":"2.0","id":"three","method":"ping"}`, `null`, -32700},
		{"a trailing comma", `{"jsonrpc":"2.0","id":"comma","method":"ping",}`, `null`, -32700},
		{"a number that is none", `{"jsonrpc":"2.0","id":01,"method":"ping"}`, `null`, -32700},
		{"too deep", deep, `null`, -32700},
		{"an array", `[{"jsonrpc":"2.0","id":"batch","method":"ping"}]`, `null`, -32600},
		{"an empty array", `[]`, `null`, -32600},
		{"a text", `"ping"`, `null`, -32600},
		{"a number", `42`, `null`, -32600},
		{"null", `null`, `null`, -32600},
		{"an empty object", `{}`, `null`, -32600},
		{"no method", `{"jsonrpc":"2.0","id":"none"}`, `"none"`, -32600},
		{"an empty method", `{"jsonrpc":"2.0","id":"empty","method":""}`, `"empty"`, -32600},
		{"a method that is a number", `{"jsonrpc":"2.0","id":"number","method":5}`, `"number"`, -32600},
		{"another version", `{"jsonrpc":"1.0","id":"version","method":"ping"}`, `"version"`, -32600},
		{"no version", `{"id":"bare","method":"ping"}`, `"bare"`, -32600},
		{"a notification without a version", `{"method":"notifications/exit"}`, `null`, -32600},
		{"an id that is null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `null`, -32600},
		{"an id that is an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `null`, -32600},
		{"an id that is a boolean", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, `null`, -32600},
		{"a method twice", `{"jsonrpc":"2.0","id":"twice","method":"ping","method":"tools/list"}`, `"twice"`, -32600},
		{"params twice", `{"jsonrpc":"2.0","id":"params","method":"ping","params":{},"params":{}}`, `"params"`, -32600},
		{"a key twice, once escaped", `{"jsonrpc":"2.0","id":"escaped","method":"ping","m\u0065thod":"tools/list"}`, `"escaped"`, -32600},
		{"keys in other case", `{"jsonrpc":"2.0","ID":"case","Method":"ping"}`, `null`, -32600},
		{"a line that is too long", long, `null`, -32600},
		{"a result for nobody", `{"jsonrpc":"2.0","id":"stranger","result":{}}`, ``, 0},
		{"an error for nobody", `{"jsonrpc":"2.0","id":"stranger","error":{"code":1,"message":"x"}}`, ``, 0},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"notifications/nothing"}`, ``, 0},
		{"a notification with a request's method", `{"jsonrpc":"2.0","method":"tools/list"}`, ``, 0},
		{"a cancellation of nothing", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}`, ``, 0},
		{"a cancellation without an id", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, ``, 0},
		{"a blank line", ``, ``, 0},
		{"spaces", "  \t ", ``, 0},
		{"a carriage return", "\r", ``, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := p.count()
			p.write(c.line)
			var want []string
			if c.id != "" {
				want = []string{fmt.Sprintf("%s %d", c.id, c.code)}
			}
			marker := fmt.Sprintf(`"marker %d"`, i)
			p.send(marker, "initialize", `{}`) // answered in its turn, so behind whatever that line caused
			p.answer(marker)
			if got := p.errorsSince(before, marker); strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("answered with %q, want %q", got, want)
			}
		})
	}
	if got := p.exec("a", "echo", `{"text":"still here"}`); got != "still here" {
		t.Errorf("got %q", got)
	}
}

// TestEnvelopesThatAreFine are lines a stricter or laxer reader would take wrong.
func TestEnvelopesThatAreFine(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	for id, line := range map[string]string{
		`"crlf"`:    `{"jsonrpc":"2.0","id":"crlf","method":"ping"}` + "\r",
		`"spaces"`:  ` { "jsonrpc" : "2.0" , "id" : "spaces" , "method" : "ping" } `,
		`"order"`:   `{"params":{},"method":"ping","id":"order","jsonrpc":"2.0"}`,
		`"unknown"`: `{"jsonrpc":"2.0","id":"unknown","method":"ping","extra":[1],"Method":"tools/list","ID":7}`,
		`"escape"`:  `{"jsonrpc":"2.0","id":"escape","method":"p\u0069ng"}`,
		`"bad utf"`: `{"jsonrpc":"2.0","id":"bad utf","method":"ping","params":{"a":"` + "\xff" + `"}}`,
	} {
		p.write(line)
		if m := p.answer(id); string(m.Result) != "{}" {
			t.Errorf("%s: %s%s", line, m.Result, m.Error)
		}
	}
}

func TestShutdownAndExit(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
	p.initialize()
	if got := p.result("shutdown", ""); got != "{}" {
		t.Errorf("shutdown answers %s", got)
	}
	p.notify("notifications/exit", "{}")
	if code := p.waitEnd(stopTime); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
