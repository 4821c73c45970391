package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// oddTools are tools whose parameters have the names that models use for
// envelopes. The upstream answers a call of them with their name and what came.
const oddTools = `[
	{"name":"wrapper","inputSchema":{"type":"object","properties":{"arguments":{"type":"object"},"server_name":{"type":"string"},"tool_name":{"type":"string"}}}},
	{"name":"filter","inputSchema":{"type":"object","properties":{"input":{"type":"string"},"args":{"type":"array"},"parameters":{}},"required":["input"]}},
	{"name":"text","inputSchema":{"type":"object","properties":{"json":{"type":"string"},"any":{},"either":{"type":["string","object"]}}}},
	{"name":"free","inputSchema":{"type":"object"}},
	{"name":"closed","inputSchema":{"type":"object","properties":{},"additionalProperties":false}},
	{"name":"a.b","inputSchema":{"type":"object"}},
	{"name":"t__x","inputSchema":{"type":"object"}}
]`

func oddUpstream(t *testing.T) map[string]any {
	file := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(file, []byte(oddTools), 0o600); err != nil {
		t.Fatal(err)
	}
	return mcptest.Upstream(t, "-tools-file", file)
}

// TestMisshapenArguments sends what models send, and looks at what the upstream
// got. outer is the whole arguments object of exec.
func TestMisshapenArguments(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"t": oddUpstream(t), "my server": mcptest.Upstream(t)})
	p.initialize()
	for _, c := range []struct{ name, outer, want string }{
		{"as it should be", `{"server_name":"t","tool_name":"nested","arguments":{"filter":{"tags":["a"]},"ids":[1]}}`, `{"filter":{"tags":["a"]},"ids":[1]}`},
		{"spaces and big numbers stay", `{"server_name":"t","tool_name":"arguments","arguments":{ "n" : 9007199254740993, "e":1e400 }}`, `{ "n" : 9007199254740993, "e":1e400 }`},

		{"a JSON string", `{"server_name":"t","tool_name":"nested","arguments":"{\"filter\":{},\"ids\":[9007199254740993]}"}`, `{"filter":{},"ids":[9007199254740993]}`},
		{"a JSON string with space around", `{"server_name":"t","tool_name":"nested","arguments":" {\"filter\":{}}\n"}`, `{"filter":{}}`},
		{"a JSON string, empty object", `{"server_name":"t","tool_name":"arguments","arguments":"{}"}`, `{}`},
		{"an empty string", `{"server_name":"t","tool_name":"arguments","arguments":""}`, `{}`},
		{"null", `{"server_name":"t","tool_name":"arguments","arguments":null}`, `{}`},
		{"null as a string", `{"server_name":"t","tool_name":"arguments","arguments":"null"}`, `{}`},
		{"missing", `{"server_name":"t","tool_name":"arguments"}`, `{}`},
		{"an empty object", `{"server_name":"t","tool_name":"arguments","arguments":{}}`, `{}`},

		{"flattened", `{"server_name":"t","tool_name":"nested","filter":{"tags":["a"]},"ids":[1,2]}`, `{"filter":{"tags":["a"]},"ids":[1,2]}`},
		{"flattened in front", `{"filter":{},"server_name":"t","tool_name":"nested"}`, `{"filter":{}}`},
		{"flattened beside an empty object", `{"server_name":"t","tool_name":"nested","arguments":{},"filter":{}}`, `{"filter":{}}`},
		{"flattened beside null", `{"server_name":"t","tool_name":"nested","arguments":null,"filter":{}}`, `{"filter":{}}`},
		{"flattened beside an empty string", `{"server_name":"t","tool_name":"nested","arguments":"","filter":{}}`, `{"filter":{}}`},
		{"flattened, and no parameters are declared", `{"server_name":"t","tool_name":"arguments","path":"/x"}`, `{"path":"/x"}`},
		{"dotted", `{"server_name":"t","tool_name":"nested","arguments.filter":{},"arguments.ids":[3]}`, `{"filter":{},"ids":[3]}`},
		{"dotted beside an empty object", `{"server_name":"t","tool_name":"nested","arguments":{},"arguments.filter":{}}`, `{"filter":{}}`},

		{"args", `{"server_name":"t","tool_name":"nested","args":{"filter":{}}}`, `{"filter":{}}`},
		{"parameters", `{"server_name":"t","tool_name":"nested","parameters":{"filter":{}}}`, `{"filter":{}}`},
		{"input", `{"server_name":"t","tool_name":"nested","input":{"filter":{}}}`, `{"filter":{}}`},
		{"args as a JSON string", `{"server_name":"t","tool_name":"nested","args":"{\"filter\":{}}"}`, `{"filter":{}}`},
		{"input beside an empty object", `{"server_name":"t","tool_name":"nested","arguments":{},"input":{"filter":{}}}`, `{"filter":{}}`},

		{"a doubled envelope", `{"server_name":"t","tool_name":"nested","arguments":{"server_name":"t","tool_name":"nested","arguments":{"filter":{}}}}`, `{"filter":{}}`},
		{"a doubled arguments", `{"server_name":"t","tool_name":"nested","arguments":{"arguments":{"filter":{}}}}`, `{"filter":{}}`},
		{"a doubled envelope alone", `{"arguments":{"server_name":"t","tool_name":"nested","arguments":{"filter":{}}}}`, `{"filter":{}}`},
		{"a doubled envelope with a JSON string", `{"server_name":"t","tool_name":"nested","arguments":{"arguments":"{\"filter\":{}}"}}`, `{"filter":{}}`},
		{"a doubled envelope as a JSON string", `{"server_name":"t","tool_name":"nested","arguments":"{\"arguments\":{\"filter\":{}}}"}`, `{"filter":{}}`},

		{"server.tool", `{"server_name":"t","tool_name":"t.nested","arguments":{"filter":{}}}`, `{"filter":{}}`},
		{"server__tool", `{"server_name":"t","tool_name":"t__nested","arguments":{"filter":{}}}`, `{"filter":{}}`},
		{"server.tool without a server", `{"tool_name":"t.nested","arguments":{"filter":{}}}`, `{"filter":{}}`},
		{"server__tool without a server", `{"tool_name":"t__nested","arguments":{"filter":{}}}`, `{"filter":{}}`},
		{"server__tool with an empty server", `{"server_name":"","tool_name":"my server__nested","arguments":{"filter":{}}}`, `{"filter":{}}`},

		{"an object as a JSON string", `{"server_name":"t","tool_name":"nested","arguments":{"filter":"{\"tags\":[\"a\"]}"}}`, `{"filter":{"tags":["a"]}}`},
		{"an array as a JSON string", `{"server_name":"t","tool_name":"nested","arguments":{"filter":{},"ids":"[1, 9007199254740993]"}}`, `{"filter":{},"ids":[1, 9007199254740993]}`},
		{"both", `{"server_name":"t","tool_name":"nested","arguments":{"filter":"{}","ids":"[]"}}`, `{"filter":{},"ids":[]}`},
		{"deeper down", `{"server_name":"t","tool_name":"nested","arguments":{"filter":{"tags":"[\"a\"]"}}}`, `{"filter":{"tags":["a"]}}`},
		{"everything as JSON strings", `{"server_name":"t","tool_name":"nested","arguments":"{\"filter\":\"{}\"}"}`, `{"filter":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := p.request("tools/call", `{"name":"exec","arguments":`+c.outer+`}`)
			if m.Error != nil {
				t.Fatalf("error %s", m.Error)
			}
			if got := textOf(t, string(m.Result), false); got != c.want {
				t.Errorf("the upstream got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestNotRepaired has calls that look like mistakes and are none: the upstream
// must get them as they are.
func TestNotRepaired(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"t": oddUpstream(t)})
	p.initialize()
	for _, c := range []struct{ name, outer, want string }{
		{"a parameter named arguments", `{"server_name":"t","tool_name":"wrapper","arguments":{"arguments":{"a":1}}}`, `wrapper {"arguments":{"a":1}}`},
		{"a parameter named server_name", `{"server_name":"t","tool_name":"wrapper","arguments":{"server_name":"x","tool_name":"y","arguments":{}}}`, `wrapper {"server_name":"x","tool_name":"y","arguments":{}}`},
		{"a parameter named tool_name", `{"server_name":"t","tool_name":"wrapper","arguments":{"tool_name":"y"}}`, `wrapper {"tool_name":"y"}`},
		{"a parameter named input", `{"server_name":"t","tool_name":"filter","arguments":{"input":"{\"a\":1}"}}`, `filter {"input":"{\"a\":1}"}`},
		{"a parameter named input, flattened", `{"server_name":"t","tool_name":"filter","input":"x"}`, `filter {"input":"x"}`},
		{"a parameter named parameters", `{"server_name":"t","tool_name":"filter","arguments":{"input":"","parameters":{"a":1}}}`, `filter {"input":"","parameters":{"a":1}}`},
		{"a string that looks like an object", `{"server_name":"t","tool_name":"text","arguments":{"json":"{\"a\":1}"}}`, `text {"json":"{\"a\":1}"}`},
		{"a string that looks like an array", `{"server_name":"t","tool_name":"text","arguments":{"json":"[1]"}}`, `text {"json":"[1]"}`},
		{"a string where anything goes", `{"server_name":"t","tool_name":"text","arguments":{"any":"{}","either":"[]"}}`, `text {"any":"{}","either":"[]"}`},
		{"undeclared, under a known name", `{"server_name":"t","tool_name":"free","arguments":{"arguments":{"a":1},"b":2}}`, `free {"arguments":{"a":1},"b":2}`},
		{"a tool with a dot in its name", `{"server_name":"t","tool_name":"a.b"}`, `a.b {}`},
		{"a tool that looks like server__tool", `{"server_name":"t","tool_name":"t__x"}`, `t__x {}`},
		{"two spellings of one key", `{"server_name":"t","tool_name":"free","arguments":{"Text":"a","text":"b"}}`, `free {"Text":"a","text":"b"}`},
		{"odd escapes", `{"server_name":"t","tool_name":"free","arguments":{"a":"\u00e9\/\ud83d\ude00"}}`, `free {"a":"\u00e9\/\ud83d\ude00"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := p.request("tools/call", `{"name":"exec","arguments":`+c.outer+`}`)
			if m.Error != nil {
				t.Fatalf("error %s", m.Error)
			}
			if got := textOf(t, string(m.Result), false); got != c.want {
				t.Errorf("the upstream got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestMessages compares the whole texts of what a model can get wrong.
func TestMessages(t *testing.T) {
	t.Parallel()
	some := mcptest.Upstream(t)
	some["tools"] = map[string]any{"allow": []string{"echo", "nested", "pid"}}
	p := serve(t, map[string]any{"time": some, "files": mcptest.Upstream(t)})
	p.initialize()
	const tools = "echo, nested, pid"
	const echo = "echo(text: string, times?: integer /*>=1*/)"
	for _, c := range []struct{ name, outer, want string }{
		{"unknown server", `{"server_name":"tiem","tool_name":"echo","arguments":{"text":"x"}}`, `unknown server "tiem"; did you mean "time"? Servers: files, time, mcpx`},
		{"unknown server, nothing near", `{"server_name":"postgres","tool_name":"echo"}`, `unknown server "postgres"; servers: files, time, mcpx`},
		{"no server", `{"tool_name":"echo"}`, `server_name: required; servers: files, time, mcpx`},
		{"a server of the wrong type", `{"server_name":5,"tool_name":"echo"}`, `server_name: required; servers: files, time, mcpx`},
		{"no arguments at all", `{}`, `server_name: required; servers: files, time, mcpx`},
		{"unknown tool", `{"server_name":"time","tool_name":"ecoh","arguments":{}}`, `server "time" has no tool "ecoh"; did you mean "echo"? Its tools: ` + tools},
		{"unknown tool, nothing near", `{"server_name":"time","tool_name":"xyzzy"}`, `server "time" has no tool "xyzzy"; its tools: ` + tools},
		{"a hidden tool", `{"server_name":"time","tool_name":"crash"}`, `server "time" has no tool "crash"; its tools: ` + tools},
		{"no tool", `{"server_name":"time"}`, `tool_name: required; tools of server "time": ` + tools},
		{"missing argument", `{"server_name":"time","tool_name":"echo","arguments":{}}`, "arguments.text: required\n" + echo},
		{"wrongly typed argument", `{"server_name":"time","tool_name":"echo","arguments":{"text":"x","times":"three"}}`, `arguments.times: expected integer, got string "three"` + "\n" + echo},
		{"missing and wrongly typed", `{"server_name":"time","tool_name":"echo","arguments":{"times":true}}`, "arguments.text: required\narguments.times: expected integer, got boolean true\n" + echo},
		{"out of range", `{"server_name":"time","tool_name":"echo","arguments":{"text":"x","times":0}}`, "arguments.times: expected at least 1, got 0\n" + echo},
		{"deep down", `{"server_name":"time","tool_name":"nested","arguments":{"filter":{"tags":[1]}}}`, "arguments.filter.tags[0]: expected string, got number 1\nnested(filter: {tags?: string[]}, ids?: integer[])"},
		{"unknown argument", `{"server_name":"time","tool_name":"nested","arguments":{"filter":{},"idz":[1]}}`, "arguments.idz: unknown property; did you mean \"ids\"?\nnested(filter: {tags?: string[]}, ids?: integer[])"},
		{"arguments are an array", `{"server_name":"time","tool_name":"echo","arguments":[1]}`, "arguments: expected object, got array [1]\n" + echo},
		{"arguments are a number", `{"server_name":"time","tool_name":"echo","arguments":7}`, "arguments: expected object, got number 7\n" + echo},
		{"arguments are a text", `{"server_name":"time","tool_name":"echo","arguments":"hello"}`, "arguments: expected object, got string \"hello\"\n" + echo},
		{"an array where an object is wanted, as a string", `{"server_name":"time","tool_name":"nested","arguments":{"filter":"[1]"}}`, "arguments.filter: expected object, got string \"[1]\"\nnested(filter: {tags?: string[]}, ids?: integer[])"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := p.request("tools/call", `{"name":"exec","arguments":`+c.outer+`}`)
			if m.Error != nil {
				t.Fatalf("error %s", m.Error)
			}
			if got := textOf(t, string(m.Result), true); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestLineBreaksInsideArguments sends JSON strings that are written over several
// lines, as models pretty-print them. A raw line break on the upstream's stdin
// would end the message: a part of it could be a message of its own.
func TestLineBreaksInsideArguments(t *testing.T) {
	t.Parallel()
	quick := mcptest.Upstream(t)
	quick["timeout"] = "10s"
	quick["tools"] = map[string]any{"deny": []string{"crash"}}
	p := start(t, map[string]any{"mcpServers": map[string]any{"t": quick}}, options{flags: []string{"--log-level", "debug"}})
	p.initialize()
	for _, c := range []struct{ name, arguments, want string }{
		{"arguments", `"{\n  \"filter\": {},\r\n  \"ids\": [\n1]\n}"`, `{"filter":{},"ids":[1]}`},
		{"an array", `{"filter":{},"ids":"[\n1\n]"}`, `{"filter":{},"ids":[1]}`},
		{"an object", `{"filter":"{\n\"tags\":\n[]}"}`, `{"filter":{"tags":[]}}`},
		{"a doubled envelope", `{"arguments":"{\n\"filter\":{}}"}`, `{"filter":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := p.result("tools/call", execParams("t", "nested", c.arguments))
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(textOf(t, got, false))); err != nil || compact.String() != c.want {
				t.Errorf("the upstream got\n%s (%v)\nwant\n%s", compact.String(), err, c.want)
			}
		})
	}
	// The second line is a call of a tool that is hidden.
	p.exec("t", "arguments", `"{\"a\":\n{\"jsonrpc\":\"2.0\",\"id\":4711,\"method\":\"tools/call\",\"params\":{\"name\":\"crash\",\"arguments\":{\"stderr\":\"injected\"}}}\n}"`)
	if log := p.errors(); strings.Contains(log, "injected") {
		t.Errorf("the upstream took a part of the arguments for a message:\n%s", log)
	}
}
