package executor

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"mcpx/executor/listing"
	"mcpx/registry/lists"
)

// toolsOf says how many tools a running upstream has, and their names.
func (b *bench) toolsOf(t *testing.T, server string) (n int, list string) {
	t.Helper()
	u := b.registry.Settled(t.Context(), server)
	if len(u.Tools) < 10 {
		t.Fatalf("%s is %s, %s, with %d tools", server, u.State, u.Reason, len(u.Tools))
	}
	return len(u.Tools), strings.Join(listing.ToolNames(u), ", ")
}

func TestNamesThatAreNot(t *testing.T) {
	b := start(t, nil, newUpstream(t, "files"), newUpstream(t, "fil es"), newUpstream(t, "time", "-no-tools"))
	const servers = "files, fil es, time, mcpx"
	_, tools := b.toolsOf(t, "files")
	for _, row := range []struct{ name, arguments, want string }{
		{"no server", `{}`, "server_name: required; servers: " + servers},
		{"no server but a tool", `{"tool_name":"echo"}`, "server_name: required; servers: " + servers},
		{"a server of another type", `{"server_name":5,"tool_name":"echo"}`, "server_name: required; servers: " + servers},
		{"a near server", `{"server_name":"Files","tool_name":"echo"}`, `unknown server "Files"; did you mean "files" or "fil es"? Servers: ` + servers},
		{"a far server", `{"server_name":"weather","tool_name":"echo"}`, `unknown server "weather"; servers: ` + servers},
		{"a hostile server", `{"server_name":"x\n\u001b[31mred\u202e","tool_name":"echo"}`, `unknown server "x\n\u001b[31mred\u202e"; servers: ` + servers},
		{"no tool", `{"server_name":"files"}`, `tool_name: required; tools of server "files": ` + tools},
		{"no tool where none is", `{"server_name":"time"}`, `tool_name: required; tools of server "time": none`},
		{"a near tool", `{"server_name":"files","tool_name":"ecko"}`, `server "files" has no tool "ecko"; did you mean "echo"? Its tools: ` + tools},
		{"near tools", `{"server_name":"files","tool_name":"list"}`, `server "files" has no tool "list"; did you mean "lists"? Its tools: ` + tools},
		{"a far tool", `{"server_name":"files","tool_name":"xylophone"}`, `server "files" has no tool "xylophone"; its tools: ` + tools},
		{"a tool of no tools", `{"server_name":"time","tool_name":"now"}`, `server "time" has no tool "now"; its tools: none`},
		{"a hostile tool", `{"server_name":"files","tool_name":"a\r\nb\u2028"}`, `server "files" has no tool "a\u000d\nb\u2028"; its tools: ` + tools},
		{"mcpx's own", `{"server_name":"mcpx","tool_name":"serve"}`, `server "mcpx" has no tool "serve"; did you mean "servers"? Its tools: read_result, schema, servers, show_config`},
		{"another case", `{"server_name":"files","tool_name":"Echo"}`, `server "files" has no tool "Echo"; did you mean "echo"? Its tools: ` + tools},
	} {
		if got := b.exec(t, row.arguments); got != "error: "+row.want {
			t.Errorf("%s:\n got %s\nwant error: %s", row.name, got, row.want)
		}
	}
}

func TestNamesWithTheServerInFront(t *testing.T) {
	odd := toolsFile(t, `{"name":"odd.echo"}`, `{"name":"files.x"}`, `{"name":"a__b"}`)
	b := start(t, nil, newUpstream(t, "files", odd...), newUpstream(t, "files.more", odd...))
	for _, row := range []struct{ arguments, server, tool string }{
		{`"server_name":"files","tool_name":"files__pid"`, "files", "pid"},
		{`"server_name":"files","tool_name":"files.pid"`, "files", "pid"},
		{`"server_name":"files","tool_name":"files/pid"`, "files", "pid"},
		{`"server_name":"files","tool_name":"files:pid"`, "files", "pid"},
		{`"tool_name":"files__pid"`, "files", "pid"},
		{`"tool_name":"files.pid"`, "files", "pid"},
		{`"tool_name":"files/pid"`, "files", "pid"},
		{`"tool_name":"files:pid"`, "files", "pid"},
		{`"server_name":"","tool_name":"files.pid"`, "files", "pid"},
		{`"server_name":"files","tool_name":"files.x"`, "files", "files.x"}, // its own name comes first
		{`"server_name":"files","tool_name":"files.files.x"`, "files", "files.x"},
		{`"server_name":"files","tool_name":"odd.echo"`, "files", "odd.echo"},
		{`"server_name":"files","tool_name":"files.odd.echo"`, "files", "odd.echo"},
		{`"server_name":"files","tool_name":"files__a__b"`, "files", "a__b"},
		{`"tool_name":"files.more.pid"`, "files.more", "pid"}, // files has no more.pid
		{`"tool_name":"files.more__a__b"`, "files.more", "a__b"},
		{`"tool_name":"mcpx.servers"`, "mcpx", "servers"},
		{`"server_name":"mcpx","tool_name":"mcpx__servers"`, "mcpx", "servers"},
	} {
		got := b.exec(t, "{"+row.arguments+"}")
		if e := b.last(); strings.HasPrefix(got, "error") || e.Server != row.server || e.Tool != row.tool {
			t.Errorf("%s: called %q of %q, want %q of %q: %s", row.arguments, e.Tool, e.Server, row.tool, row.server, got)
		}
	}
	for _, arguments := range []string{
		`"server_name":"files","tool_name":"files-pid"`,
		`"server_name":"files","tool_name":"Files.pid"`,
		`"server_name":"files","tool_name":"mcpx.servers"`,
		`"server_name":"files","tool_name":"files."`,
		`"tool_name":"pid"`,
		`"tool_name":"files."`,
	} {
		got := b.exec(t, "{"+arguments+"}")
		if !strings.HasPrefix(got, "error: ") || b.last().Outcome != "not_found" {
			t.Errorf("%s: %s, want that it is not found", arguments, got)
		}
	}
}

func TestLocate(t *testing.T) {
	b := start(t, nil, newUpstream(t, "files"), newUpstream(t, "more", toolsFile(t, `{"name":"only"}`)...))
	b.registry.Settled(t.Context(), "files")
	b.registry.Settled(t.Context(), "more")
	for name, want := range map[string]string{
		"echo":         "files echo true", // the first that has it
		"only":         "more only true",
		"more__echo":   "more echo true",
		"more.only":    "more only true",
		"more/only":    "more only true",
		"more:only":    "more only true",
		"schema":       "mcpx schema true",
		"mcpx__schema": "mcpx schema true",
		"":             "  false",
		"more__":       "  false",
		"files__only":  "  false",
		"nothing":      "  false",
	} {
		server, tool, ok := b.Locate(nil, name)
		if got := fmt.Sprintf("%s %s %v", server, tool, ok); got != want {
			t.Errorf("Locate(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestErrorsOfManyHostileNamesStaySmallAndOnOneLine(t *testing.T) {
	var tools []*lists.Tool
	for i := range 500 {
		tools = append(tools, tool(t, fmt.Sprintf(`{"name":"bad\n\u001b[3%dm\u202ename_%d"}`, i%8, i)))
	}
	u := upstreamOf("many", tools)
	for _, err := range []error{
		unknownTool(u, "bad_name"),
		unknownTool(u, strings.Repeat("bad\nname", 1000)),
		noTool(u),
		unknownServer(strings.Repeat("y", 10_000), listing.ToolNames(u)),
	} {
		text := err.Error()
		if len(text) > 4000 {
			t.Errorf("the error has %d bytes: %.100q…", len(text), text)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); i >= 0 {
			t.Errorf("the error has %q in it", text[max(i-10, 0):i+10])
		}
	}
	near := unknownTool(upstreamOf("u", []*lists.Tool{tool(t, `{"name":"list\nissues"}`), tool(t, `{"name":"list_issues"}`)}), "list_issue")
	want := `server "u" has no tool "list_issue"; did you mean "list_issues" or "list\nissues"? Its tools: list\nissues, list_issues`
	if near.Error() != want {
		t.Errorf("error %s, want %s", near, want)
	}
}
