package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestArgumentsAreRepaired sends exec calls as models write them and compares what
// the upstream receives, or the error that the model gets. The whole table is
// TestRepair in the executor.
func TestArgumentsAreRepaired(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"t": mcptest.Upstream(t)})
	p.initialize()
	const nested = `"server_name":"t","tool_name":"nested"`
	for _, c := range []struct{ name, outer, want string }{
		{"unchanged", `{"server_name":"t","tool_name":"arguments","arguments":{ "n" : 9007199254740993, "e":1e400 }}`, `{ "n" : 9007199254740993, "e":1e400 }`},
		{"JSON string", `{` + nested + `,"arguments":"{\"filter\":{},\"ids\":[9007199254740993]}"}`, `{"filter":{},"ids":[9007199254740993]}`},
		{"beside the tool name", `{` + nested + `,"arguments":{},"filter":{"tags":["a"]},"ids":[1,2]}`, `{"filter":{"tags":["a"]},"ids":[1,2]}`},
		{"nested envelope", `{"arguments":{` + nested + `,"arguments":{"filter":{}}}}`, `{"filter":{}}`},
		{"server in the tool name", `{"tool_name":"t__nested","arguments":{"filter":"{}"}}`, `{"filter":{}}`},
		{"wrong type", `{` + nested + `,"arguments":{"filter":{"tags":[true]}}}`, "error: arguments.filter.tags[0]: expected string, got boolean true\nnested(filter: {tags?: string[]}, …)"},
		{"unknown server", `{"server_name":"tt","tool_name":"nested"}`, `error: unknown server "tt"; servers: t, mcpx`},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, isError := strings.CutPrefix(c.want, "error: ")
			if got := p.text(`{"name":"exec","arguments":`+c.outer+`}`, isError); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestArgumentsStayOnOneLine sends JSON strings with line breaks. A raw line break on
// the upstream's stdin would end the message, and the rest could be a message of its own.
func TestArgumentsStayOnOneLine(t *testing.T) {
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
		{"a nested envelope", `{"arguments":"{\n\"filter\":{}}"}`, `{"filter":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(p.exec("t", "nested", c.arguments))); err != nil || compact.String() != c.want {
				t.Errorf("the upstream got\n%s (%v)\nwant\n%s", compact.String(), err, c.want)
			}
		})
	}
	// The second line is a call to a hidden tool.
	p.exec("t", "arguments", `"{\"a\":\n{\"jsonrpc\":\"2.0\",\"id\":4711,\"method\":\"tools/call\",\"params\":{\"name\":\"crash\",\"arguments\":{\"stderr\":\"injected\"}}}\n}"`)
	if log := p.errors(); strings.Contains(log, "injected") {
		t.Errorf("the upstream read a part of the arguments as a message:\n%s", log)
	}
}

// TestCostlyCheck calls a tool whose schema takes 2^40 steps for one argument. That argument is
// sent unchecked. The other one, and the arguments of the next calls, are checked as usual.
func TestCostlyCheck(t *testing.T) {
	t.Parallel()
	definitions := []string{`"40":{"type":"integer"}`}
	for i := range 40 {
		definitions = append(definitions, fmt.Sprintf(`"%d":{"anyOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]}`, i, i+1, i+1))
	}
	schema := `{"type":"object","properties":{"n":{"type":"integer"},"tree":{"$ref":"#/$defs/0"}},"$defs":{` + strings.Join(definitions, ",") + `}}`
	file := writeFile(t, "tools.json", `[{"name":"plant","inputSchema":`+schema+`}]`)
	p := serve(t, map[string]any{"t": mcptest.Upstream(t, "-tools-file", file)})
	p.initialize()
	call := func(arguments string) string {
		return `{"name":"exec","arguments":{"server_name":"t","tool_name":"plant","arguments":` + arguments + `}}`
	}
	for range 5 {
		if got, want := p.text(call(`{"n":2,"tree":"oak"}`), false), `plant {"n":2,"tree":"oak"}`; got != want {
			t.Errorf("the costly call: got\n%s\nwant\n%s", got, want)
		}
		if got, want := p.text(call(`{"n":"two","tree":"oak"}`), true), `arguments.n: expected integer, got string "two"`; !strings.HasPrefix(got, want) {
			t.Errorf("the costly call with a wrong argument: got\n%s\nwant\n%s", got, want)
		}
		if got, want := p.text(call(`{"n":"two"}`), true), `arguments.n: expected integer, got string "two"`; !strings.HasPrefix(got, want) {
			t.Errorf("the next call: got\n%s\nwant\n%s", got, want)
		}
	}
}
