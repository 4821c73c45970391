package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
)

// upstreamOf is an upstream that offers only the tools of a JSON array.
func upstreamOf(t *testing.T, tools, allow string, flags ...string) map[string]any {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tools.json")
	oneLine := strings.ReplaceAll(tools, "\n", " ") // the server writes them as they are
	if err := os.WriteFile(file, []byte(oneLine), 0o600); err != nil {
		t.Fatal(err)
	}
	u := mcptest.Upstream(t, append(flags, "-tools-file", file)...)
	u["tools"] = map[string]any{"allow": []string{allow}}
	return u
}

// TestInspectTool: the definition as the upstream sent it, minified, without
// what is for hosts.
func TestInspectTool(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"a": upstreamOf(t, `[
		{"name": "x_full", "title": "Full", "icons": [{"src": "x"}], "description": "First. Second.",
		 "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"z": {"const": 9007199254740993}, "a": {"oneOf": [{"$ref": "#/$defs/d"}]}}, "$defs": {"d": {"type": "null"}}},
		 "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "other": 1.0}, "_meta": {"secret": 1}, "future": [ 1, {"a": "b c"} ]},
		{"name": "x_bare"},
		{"name": "x_évil\nname", "description": "Breaks\nlines\u2028and more", "inputSchema": {"type": "object", "properties": {"a\nb": {"enum": ["x\ny"]}}}}
	]`, "x_*", "-instructions", "Be kind.\nAlways.")})
	p.initialize()
	want := `{"name":"x_full","title":"Full","description":"First. Second.",` +
		`"inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"z":{"const":9007199254740993},"a":{"oneOf":[{"$ref":"#/$defs/d"}]}},"$defs":{"d":{"type":"null"}}},` +
		`"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"other":1.0},"future":[1,{"a":"b c"}]}`
	for _, name := range []string{"x_full", "a.x_full", "a__x_full"} {
		if got := p.inspect("a", name); got != want {
			t.Errorf("inspect(a, %s):\n%s\nwant\n%s", name, got, want)
		}
	}
	if got, want := p.inspect("a", "x_full,x_bare"), want+"\n"+`{"name":"x_bare"}`; got != want {
		t.Errorf("a comma list:\n%s\nwant\n%s", got, want)
	}
	listing := strings.Split(p.inspect("a", ""), "\n")
	if len(listing) != 4 || !strings.HasPrefix(listing[3], `x_évil\nname(`) || listing[0] != `a: 3 tools; Be kind.\nAlways.` || !strings.HasPrefix(listing[1], "x_full(") || !strings.HasSuffix(listing[1], ": First") || listing[2] != "x_bare()" {
		t.Errorf("the listing is %q", listing)
	}
	if glob := p.inspect("a", "*_b*"); glob != `a: 3 tools, 1 shown; Be kind.\nAlways.`+"\nx_bare()" {
		t.Errorf("a glob answers %q", glob)
	}
}

func TestInspectMistakes(t *testing.T) {
	t.Parallel()
	p := serve(t, map[string]any{"time": upstreamOf(t, "[]", "echo"), "files": mcptest.Upstream(t)})
	p.initialize()
	for _, c := range []struct{ name, arguments, want string }{
		{"no server", `{}`, "server_name: required; servers: files, time, mcpx"},
		{"an empty server", `{"server_name":""}`, "server_name: required; servers: files, time, mcpx"},
		{"an unknown server", `{"server_name":"tmie"}`, `unknown server "tmie"; did you mean "time"? Servers: files, time, mcpx`},
		{"an unknown tool", `{"server_name":"time","tool_name":"ehco"}`, `server "time" has no tool "ehco"; did you mean "echo"? Its tools: echo`},
		{"a glob without matches", `{"server_name":"time","tool_name":"x*"}`, `server "time" has no tool "x*"; its tools: echo`},
		{"an unknown server with a line break", `{"server_name":"a\nb\u001b[1m"}`, `unknown server "a\nb\u001b[1m"; servers: files, time, mcpx`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := p.request("tools/call", `{"name":"inspect","arguments":`+c.arguments+`}`)
			if got := textOf(t, string(m.Result), true); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestInspectIsBounded lists more tools than fit, in each of the steps.
func TestInspectIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tools int
		line  string // of the first extra tool, or "" if only its name is there
	}{
		{50, "extra_0(query: string, limit?: integer = 10): Extra tool number 0 of many"},
		{300, "extra_0(query, …)"},
		{700, "extra_0"},
		{5000, "extra_0"},
	} {
		t.Run(fmt.Sprint(c.tools), func(t *testing.T) {
			t.Parallel()
			u := mcptest.Upstream(t, "-tools", fmt.Sprint(c.tools), "-page-size", "100")
			u["tools"] = map[string]any{"allow": []string{"extra_*"}}
			p := serve(t, map[string]any{"many": u})
			p.initialize()
			got := p.inspect("many", "")
			lines := strings.Split(got, "\n")
			if lines[0] != fmt.Sprintf("many: %d tools", c.tools) || lines[1] != c.line {
				t.Errorf("the listing begins with %q, want the line %q", lines[:2], c.line)
			}
			if n := tokens.Estimate(got); n > 4000 {
				t.Errorf("the listing has about %d tokens", n)
			}
			last := lines[len(lines)-1]
			if cut := strings.HasPrefix(last, "… "); cut == (len(lines) == c.tools+1) {
				t.Errorf("%d lines for %d tools, the last %q", len(lines)-1, c.tools, last)
			}
			if text := p.inspect("many", "extra_49"); !strings.HasPrefix(text, `{"name":"extra_49",`) {
				t.Errorf("one of many: %s", text)
			}
		})
	}
}
