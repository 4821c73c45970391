package server

import (
	"encoding/json"
	"testing"
)

// TestKeysGivenTwice has requests that two readers could take for different
// ones: in every envelope a key counts in its exact spelling, and once.
func TestKeysGivenTwice(t *testing.T) {
	b := start(t, upstream(t, "a", "-full"))
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

// TestInitializeIsExact has another spelling of the version beside it, which a
// reader that folds the case of keys would take.
func TestInitializeIsExact(t *testing.T) {
	b := start(t)
	got := b.ask(t, request("initialize", `{"protocolVersion":"2025-06-18","PROTOCOLVERSION":"2024-11-05","ClientInfo":5}`))
	if want := `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18",`; len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("got %s, want %s…", got, want)
	}
}
