package executor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/rpc"
	"mcpx/internal/tokens"
	"mcpx/registry"
)

func TestServers(t *testing.T) {
	described := newUpstream(t, "a")
	described["description"] = "Line one"
	b := start(t, nil, described, newUpstream(t, "none", "-no-tools"), newUpstream(t, "exits", "-exit", "1"))
	for _, name := range []string{"a", "none", "exits"} {
		b.registry.Settled(t.Context(), name)
	}
	var got string
	for i := 0; i < 100 && (got == "" || strings.Contains(got, "exits: starting")); i++ { // it is tried again now and then
		b.registry.Settled(t.Context(), "exits")
		got = b.exec(t, `{"server_name":"mcpx","tool_name":"servers"}`)
	}
	want := regexp.MustCompile(`^a: ready, [0-9]{2} tools, [0-9]{3,4} tokens in full, started in [0-9.]+m?s; Line one
none: ready, 0 tools, 0 tokens in full, started in [0-9.]+m?s
exits: waiting, 0 tools, 0 tokens in full; exited with status 1; next try in [0-9]+s
mcpx: built in$`)
	if !want.MatchString(got) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestToolsOfParts: a tool in the options is a tool of the built-in server, before those of the core.
func TestToolsOfParts(t *testing.T) {
	c := parse(t, nil, newUpstream(t, "a"))
	echo := BuiltinTool{
		Name: "echo", Description: "Say it again.", Schema: `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`, NeedsUpstreams: true, IsFlat: true,
		Call: func(_ context.Context, e *Executor, c Call, arguments []byte) (string, error) {
			return ownerOf(c.Client) + text(arguments, "text"), nil
		},
	}
	e := New(registry.New(&c.Profiles[0], registry.Options{}), c, &c.Profiles[0], Options{Tools: []BuiltinTool{echo}})
	if text, err := e.Inspect(t.Context(), nil, Builtin, ""); err != nil || !strings.HasPrefix(text, "mcpx: 5 tools\necho(text: string): Say it again\nread_result(") {
		t.Errorf("the listing is %s, %v", text, err)
	}
	for arguments, want := range map[string]string{
		`{"text":", hello"}`: "me, hello",
		`{}`:                 "arguments.text: required\necho(text: string)",
	} {
		result, err := e.Call(t.Context(), Call{Client: client("me"), Server: Builtin, Tool: "echo", Arguments: []byte(arguments)})
		if err == nil && textOf(t, result) != want || err != nil && err.Error() != want {
			t.Errorf("%s: %s, %v, want %s", arguments, result, err, want)
		}
	}
	if e.Exposure(nil).Tool("mcpx__echo") == nil {
		t.Error("flat mode does not list it")
	}
	for name, want := range map[string]bool{"echo": true, "mcpx__echo": true, "servers": true, "mcpx.schema": true, "show_config": false, "read_result": false, "none": false} {
		if NeedsUpstreams(name, []BuiltinTool{echo}) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}

// A schema that cannot be judged is shown in the status.
func TestServersNamesUnjudgedSchemas(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a", toolsFile(t, `{"name":"remote","inputSchema":{"$ref":"https://example.com/x.json"}}`)...))
	b.exec(t, `{"server_name":"a","tool_name":"remote","arguments":{"any":"thing"}}`)
	if got := b.exec(t, `{"server_name":"mcpx","tool_name":"servers"}`); !strings.Contains(got, "remote") && !strings.Contains(got, "unchecked") {
		t.Errorf("nothing says that the arguments of remote are not checked: %s", got)
	}
}

// The full definition has every byte that the server sent.
func TestSchema(t *testing.T) {
	const sent = `{ "name":"full", "icons":[{"src":"data:"}],"_meta":{"n":9007199254740993},"inputSchema":{"type": "object"},"outputSchema":{"type":"object","properties":{"a":{"const":1.0}}} }`
	b := start(t, nil, newUpstream(t, "a", toolsFile(t, sent)...))
	schema := func(arguments string) string {
		return b.exec(t, `{"server_name":"mcpx","tool_name":"schema","arguments":`+arguments+`}`)
	}
	for _, row := range []struct{ name, arguments, want string }{
		{"a tool", `{"server":"a","tool":"full"}`, sent},
		{"with the server in front", `{"server":"a","tool":"a.full"}`, sent},
		{"no such server", `{"server":"b","tool":"full"}`, `error: unknown server "b"; servers: a, mcpx`},
		{"no tool", `{"server":"a"}`, "error: arguments.tool: required\nschema(tool: string, …)"},
	} {
		if got := schema(row.arguments); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
	if got, want := schema(`{"server":"a","tool":"ful"}`), `error: server "a" has no tool "ful"; did you mean "full"?`; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want it to begin with %s", got, want)
	}
}

func TestShowConfig(t *testing.T) {
	u := newUpstream(t, "a")
	u["env"].(map[string]string)["API_KEY"] = "hunter2-hunter2"
	b := start(t, nil, u)
	got := b.exec(t, `{"server_name":"mcpx","tool_name":"show_config"}`)
	if got != string(b.settings.Load().config.Show()) || !strings.Contains(got, `"API_KEY"`) || strings.Contains(got, "hunter2") {
		t.Errorf("got %s", got)
	}
}

func TestReadResultErrors(t *testing.T) {
	b := start(t, map[string]any{"result_tokens": 300}, newUpstream(t, "a"))
	read := func(arguments string) string {
		return b.exec(t, `{"server_name":"mcpx","tool_name":"read_result","arguments":`+arguments+`}`)
	}
	if got, want := read(`{"id":"r1"}`), `error: no result "r1": none is kept any more; call the tool again`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	b.exec(t, `{"server_name":"a","tool_name":"large","arguments":{"bytes":10000}}`)
	for _, row := range []struct{ name, arguments, want string }{
		{"another id", `{"id":"r2"}`, `error: no result "r2": kept are r1; call the tool again for others`},
		{"no id", `{}`, "error: arguments.id: required\nread_result(id: string, …)"},
		{"past the end", `{"id":"r1","offset":10000}`, "error: offset 10000 is past the end: there are 10000 bytes"},
		{"no JSON", `{"id":"r1","path":"/a"}`, `error: r1: the result is not JSON; use offset or grep`},
		{"no pattern", `{"id":"r1","grep":"("}`, "error: grep: not an RE2 pattern: error parsing regexp: missing closing ): `(`"},
		{"a limit of nothing", `{"id":"r1","limit":0}`, "error: arguments.limit: expected at least 1, got 0\nread_result(limit?: integer /*>=1*/, …)"},
		{"read", `{"id":"r1","limit":6}`, "a line\n[bytes 0-6 of 10000; next offset 6]"},
		{"an integer written otherwise", `{"id":"r1","limit":6.0}`, "a line\n[bytes 0-6 of 10000; next offset 6]"},
	} {
		if got := read(row.arguments); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}

// TestReadResultWithASmallLimit: an answer of read_result is not cut again.
func TestReadResultWithASmallLimit(t *testing.T) {
	b := start(t, map[string]any{"result_tokens": 20}, newUpstream(t, "a"))
	b.exec(t, `{"server_name":"a","tool_name":"large","arguments":{"bytes":10000}}`)
	got := b.exec(t, `{"server_name":"mcpx","tool_name":"read_result","arguments":{"id":"r1"}}`)
	if !strings.HasSuffix(got, " of 10000; next offset "+got[strings.LastIndexByte(got, ' ')+1:]) || strings.Contains(got, "[cut: ") {
		t.Errorf("got %s", got)
	}
}

// What mcpx itself answers is bounded like any other result.
func TestOwnAnswersAreCutToo(t *testing.T) {
	var upstreams []map[string]any
	for i := range 200 {
		upstreams = append(upstreams, map[string]any{"name": fmt.Sprintf("server-%d", i), "command": "none", "description": "Something that it does"})
	}
	c := parse(t, map[string]any{"result_tokens": 500}, upstreams...)
	e := idle(c)
	for _, name := range []string{"servers", "show_config"} {
		result, err := e.Call(t.Context(), Call{Client: client("c"), Server: "mcpx", Tool: name})
		if err != nil {
			t.Fatal(err)
		}
		if cost := tokens.CountBytes(result); cost > 1000 { // with the escapes of JSON, and what says how to read on
			t.Errorf("%s answers %d tokens, though results are cut at 500", name, cost)
		}
	}
}

func TestRefused(t *testing.T) {
	for want, own := range map[string]*rpc.Error{
		`server "a" answered with error -32042: it did not work`:                       {Code: -32042, Message: "it did not work"},
		`server "a" answered with error 7: no` + "\ndata: " + `{"n":9007199254740993}`: {Code: 7, Message: "no", Data: []byte(`{"n":9007199254740993}`)},
	} {
		err := error(&UpstreamError{Server: "a", Err: own})
		var found *rpc.Error
		if err.Error() != want || !errors.As(err, &found) || found != own {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	huge := &UpstreamError{Server: "a", Err: &rpc.Error{Message: strings.Repeat("x", 1<<20), Data: []byte(strings.Repeat("1", 1<<20))}}
	if n := len(huge.Error()); n > 3*maxErrorPart {
		t.Errorf("an error of %d bytes", n)
	}
}
