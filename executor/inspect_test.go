package executor

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/rawjson"
	"mcpx/internal/tokens"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

const echoDefinition = `{"name":"echo","description":"Say it again. A second sentence.","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"times":{"type":"integer","minimum":1}},"required":["text"]}}`

const pidDefinition = `{"name":"pid","description":"The server's process id","inputSchema":{"type":"object"}}`

func TestInspect(t *testing.T) {
	b := start(t, nil, newUpstream(t, "files", "-instructions", "Read before you write."), newUpstream(t, "none", "-no-tools"))
	n, tools := b.toolsOf(t, "files")
	head := fmt.Sprintf("files: %d tools", n)
	for _, row := range []struct{ name, server, tool, want string }{
		{"a tool", "files", "echo", echoDefinition},
		{"with the server in front", "files", "files.echo", echoDefinition},
		{"with the server in front, flat", "files", "files__echo", echoDefinition},
		{"a list", "files", "pid, echo", echoDefinition + "\n" + pidDefinition},
		{"a list of one", "files", "echo,", echoDefinition},
		{"a glob", "files", "e*", head + ", 2 shown; Read before you write.\necho(text: string, times?: integer /*>=1*/): Say it again\nenv(): The server's environment"},
		{"a glob of one", "files", "ech?", head + ", 1 shown; Read before you write.\necho(text: string, times?: integer /*>=1*/): Say it again"},
		{"globs and names", "files", "e*,pid", head + ", 3 shown; Read before you write.\necho(text: string, times?: integer /*>=1*/): Say it again\npid(): The server's process id\nenv(): The server's environment"},
		{"no tools", "none", "", "none: 0 tools\n"},
		{"no such server", "file", "", `error: unknown server "file"; did you mean "files"? Servers: files, none, mcpx`},
		{"no server", "", "echo", "error: server_name: required; servers: files, none, mcpx"},
		{"no such tool", "files", "ecko", `error: server "files" has no tool "ecko"; did you mean "echo"? Its tools: ` + tools},
		{"no such glob", "files", "zz*", `error: server "files" has no tool "zz*"; its tools: ` + tools},
		{"a tool of no tools", "none", "echo", `error: server "none" has no tool "echo"; its tools: none`},
	} {
		got, err := b.Inspect(t.Context(), nil, row.server, row.tool)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
	text, err := b.Inspect(t.Context(), nil, "files", "")
	if want := head + "; Read before you write.\necho(text: string, times?: integer /*>=1*/): Say it again\narguments(): Show the arguments as they came\n"; err != nil || !strings.HasPrefix(text, want) {
		t.Errorf("got %s, %v, want it to begin with %s", text, err, want)
	}
	// mcpx's own tools are described in full sentences.
	text, err = b.Inspect(t.Context(), nil, "mcpx", "")
	if want := regexp.MustCompile(`^mcpx: 4 tools
read_result\(id: string, offset\?: integer .*, path\?: string, grep\?: string, context\?: integer .*, select\?: string\): .+ select .+ {"\$r": .+
schema\(server: string, tool: string\): .+
servers\(\): .+
show_config\(\): .+
2 servers, ready unless noted$`); err != nil || !want.MatchString(text) || strings.Contains(text, "…") {
		t.Errorf("got %s, %v, want the like of %s", text, err, want)
	}
	// A name of a list that is not there is not passed over in silence.
	if text, err := b.Inspect(t.Context(), nil, "files", "echo,ecko"); err == nil && !strings.Contains(text, "ecko") {
		t.Errorf("inspect of echo,ecko says nothing of ecko: %s", text)
	}
}

// inspect("mcpx") names the servers that tools/list has no room for and those that are not
// ready, by their state, and keeps to the budget.
func TestTheBuiltInServerNamesServers(t *testing.T) {
	for _, row := range []struct {
		servers, budget int
		end             string
	}{
		{1, 4000, "\n1 server, ready unless noted; starting: server-0"},
		{107, 4000, ", server-105, server-106"},
		{107, 300, ` more: exec("mcpx", "servers")`},
		{107, 100, ` more: exec("mcpx", "servers")`},
		{2000, 4000, ` more: exec("mcpx", "servers")`},
	} {
		var upstreams []map[string]any
		for i := range row.servers {
			upstreams = append(upstreams, map[string]any{"name": fmt.Sprintf("server-%d", i), "command": "none"})
		}
		e := idle(parse(t, map[string]any{"inspect_tokens": row.budget}, upstreams...))
		text, err := e.Inspect(t.Context(), nil, Builtin, "")
		if cost := tokens.Count(text); err != nil || cost > row.budget || !strings.HasSuffix(text, row.end) {
			t.Errorf("%d servers, %d tokens: %d, %v\n%s", row.servers, row.budget, cost, err, text)
		}
		more := 0
		if _, after, ok := strings.Cut(text, "; … "); ok {
			_, _ = fmt.Sscanf(after, "%d more", &more)
		}
		if shown := strings.Count(text, "server-"); shown+more != row.servers {
			t.Errorf("%d servers, %d tokens: %d are shown, %d are said to be left out", row.servers, row.budget, shown, more)
		}
	}
}

func TestSeveralToolsGoOverToAListing(t *testing.T) {
	b := start(t, map[string]any{"inspect_tokens": 150}, newUpstream(t, "files", "-tools", "50"))
	n, _ := b.toolsOf(t, "files")
	text, err := b.Inspect(t.Context(), nil, "files", "extra_1,extra_2,extra_3,extra_4")
	if want := fmt.Sprintf("files: %d tools, 4 shown\nall: limit?: integer = 10\nextra_1(query: string): 1 of many\n", n); err != nil || !strings.HasPrefix(text, want) {
		t.Errorf("got %s, %v, want it to begin with %s", text, err, want)
	}
	if cost := tokens.Count(text); cost > 150 {
		t.Errorf("%d tokens", cost)
	}
}

func TestInspectInEveryState(t *testing.T) {
	dying := newUpstream(t, "dying")
	missing := newUpstream(t, "env")
	missing["args"] = []string{"${MCPX_NO_SUCH_VARIABLE}"}
	b := start(t, nil,
		newUpstream(t, "slow", "-start-delay", "200ms"),
		newUpstream(t, "exits", "-exit", "3", "-stderr", "no API key"),
		missing, dying)
	if text, err := b.Inspect(t.Context(), nil, "slow", "pid"); err != nil || text != pidDefinition {
		t.Errorf("a server that starts: %s, %v", text, err)
	}
	_, err := b.Inspect(t.Context(), nil, "exits", "")
	var unavailable *live.Unavailable
	if !errors.As(err, &unavailable) || !strings.HasPrefix(err.Error(), `server "exits" is unavailable: exited with status 3; next try in `) || !strings.HasSuffix(err.Error(), "\nlast lines of its stderr:\n  no API key") {
		t.Errorf("a server that exits: %v", err)
	}
	_, err = b.Inspect(t.Context(), nil, "env", "echo")
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "MCPX_NO_SUCH_VARIABLE") {
		t.Errorf("a server that lacks a variable: %v", err)
	}
	// What it offered stays known while it is down.
	n, _ := b.toolsOf(t, "dying")
	for { // the first death is answered by a start at once
		b.exec(t, `{"server_name":"dying","tool_name":"crash","arguments":{"status":7}}`)
		down := b.registry.Settled(t.Context(), "dying")
		text, err := b.Inspect(t.Context(), nil, "dying", "")
		if down.State != live.Waiting || b.registry.Catalog().Upstream("dying") != down {
			continue // it has started again, or is about to
		}
		if want := fmt.Sprintf("dying: %d tools (waiting: exited with status 7)\necho(", n); err != nil || !strings.HasPrefix(text, want) {
			t.Errorf("a server that is down: %.100s, %v, want it to begin with %s", text, err, want)
		}
		break
	}
	if text, err := b.Inspect(t.Context(), nil, "dying", "pid"); err != nil || text != pidDefinition {
		t.Errorf("a tool of a server that is down: %s, %v", text, err)
	}
}

// TestInspectShowsTheLastResult: without an output schema, a definition has the shape of
// the last result that this client got.
func TestInspectShowsTheLastResult(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a"))
	returns := func(c upstream.Client) string {
		t.Helper()
		text, err := b.Inspect(t.Context(), c, "a", "raw")
		if err != nil {
			t.Fatal(err)
		}
		s, _ := rawjson.String(rawjson.Get([]byte(text), "returns"))
		return s
	}
	if got := returns(client("tester")); got != "" {
		t.Errorf("before any call: %s", got)
	}
	b.call(t, raw(issueList, ""))
	if got := returns(client("tester")); got != "total, items[3]{id, title, user{login}}" {
		t.Errorf("after a call: %s", got)
	}
	if got := returns(client("other")); got != "" {
		t.Errorf("another client: %s", got)
	}
}
