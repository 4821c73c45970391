package clients

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestSwitchedOff: servers that Claude Code has disabled in any of its files stay
// disabled.
func TestSwitchedOff(t *testing.T) {
	const (
		own   = `{"mcpServers":{"user":{"command":"u"},"elsewhere":{"command":"e"}},"projects":{`
		local = `"mcpServers":{"local":{"command":"l"},"kept":{"command":"k"}}`
	)
	shared := `{"mcpServers":{"shared":{"command":"s"},"approved":{"command":"a"}}}`
	home := System{OS: "linux", Home: "/home/me", Dir: "/src/p"}
	moved := home
	moved.Lookup = lookup(map[string]string{"CLAUDE_CONFIG_DIR": "/claude"})
	windows := System{OS: "windows", Home: `C:\Users\me`, Dir: `C:\p`, Lookup: lookup(nil)}
	for _, c := range []struct {
		name   string
		system System
		files  map[string]string
		want   []string
	}{
		{"nothing", home, map[string]string{"/home/me/.claude.json": own + `"/src/p":{` + local + `}}}`, "/src/p/.mcp.json": shared}, nil},
		{"in the project, and in another", home, map[string]string{
			"/home/me/.claude.json": own + `"/src/p":{` + local + `,"disabledMcpServers":["local","user","shared"]},"/src/q":{"disabledMcpServers":["elsewhere","kept"]}}}`,
			"/src/p/.mcp.json":      shared,
		}, []string{"local", "shared", "user"}},
		{"refused", home, map[string]string{
			"/home/me/.claude.json": own + `"/src/p":{` + local + `,"disabledMcpjsonServers":["shared","local"]}}}`,
			"/src/p/.mcp.json":      shared,
		}, []string{"shared"}},
		{"the project's settings", home, map[string]string{
			"/src/p/.mcp.json": shared, "/src/p/.claude/settings.json": `{"disabledMcpjsonServers":["shared"]}`,
		}, []string{"shared"}},
		{"the settings of this copy", home, map[string]string{
			"/src/p/.mcp.json":                   shared,
			"/src/p/.claude/settings.json":       `{"enableAllProjectMcpServers":true}`,
			"/src/p/.claude/settings.local.json": `{"enabledMcpjsonServers":["approved"],"disabledMcpjsonServers":["shared"]}`,
		}, []string{"shared"}},
		{"the user's settings", home, map[string]string{
			"/src/p/.mcp.json": shared, "/home/me/.claude/settings.json": `{"disabledMcpjsonServers":["shared"]}`,
		}, []string{"shared"}},
		{"the user's settings elsewhere", moved, map[string]string{
			"/src/p/.mcp.json": shared, "/claude/settings.json": `{"disabledMcpjsonServers":["shared"]}`,
			"/home/me/.claude/settings.json": `{"disabledMcpjsonServers":["approved"]}`,
		}, []string{"shared"}},
		{"Windows", windows, map[string]string{
			`C:\Users\me\.claude.json`: own + `"C:/p":{` + local + `,"disabledMcpServers":["local","user"]}}}`,
		}, []string{"local", "user"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := &Collection{System: c.system}
			found.Add(c.system.Places("claude-code"), func(path string) ([]byte, error) {
				text, ok := c.files[path]
				if !ok {
					return nil, fs.ErrNotExist
				}
				return []byte(text), nil
			})
			made := servers(t, found)
			maps.DeleteFunc(made, func(_ string, server any) bool { return server.(map[string]any)["disabled"] != true })
			if got := slices.Sorted(maps.Keys(made)); !slices.Equal(got, c.want) {
				t.Errorf("off: %v, want %v", got, c.want)
			}
			if len(found.Notes) != len(c.want) || len(c.want) > 0 && !strings.HasSuffix(found.Notes[0], `: disabled in Claude Code, and stays disabled`) {
				t.Errorf("notes %q", found.Notes)
			}
		})
	}
}
