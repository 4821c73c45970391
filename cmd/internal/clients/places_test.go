package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func lookup(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
}

func TestPlaces(t *testing.T) {
	linux := System{OS: "linux", Home: "/home/me", Dir: "/src/p", Lookup: lookup(nil)}
	elsewhere := linux
	elsewhere.Lookup = lookup(map[string]string{"XDG_CONFIG_HOME": "/cfg", "CLAUDE_CONFIG_DIR": "/claude", "CODEX_HOME": "/codex"})
	darwin := System{OS: "darwin", Home: "/Users/me", Dir: "/src/p", Lookup: lookup(nil)}
	windows := System{OS: "windows", Home: `C:\Users\me`, Dir: `D:\p`, Lookup: lookup(map[string]string{
		"APPDATA": `C:\Users\me\AppData\Roaming`, "LOCALAPPDATA": `C:\Users\me\AppData\Local`, "XDG_CONFIG_HOME": `C:\no`})}
	bare := System{OS: "windows", Home: `C:\Users\me`, Dir: `D:\p`, Lookup: lookup(nil)}
	for _, c := range []struct {
		system System
		client string
		want   []string // the project's are marked
	}{
		{linux, "claude-desktop", []string{"/home/me/.config/Claude/claude_desktop_config.json"}},
		{elsewhere, "claude-desktop", []string{"/cfg/Claude/claude_desktop_config.json"}},
		{darwin, "claude-desktop", []string{"/Users/me/Library/Application Support/Claude/claude_desktop_config.json"}},
		{windows, "claude-desktop", []string{
			`C:\Users\me\AppData\Roaming\Claude\claude_desktop_config.json`,
			`C:\Users\me\AppData\Local\Packages\Claude_pzs8sxrjxfjjc\LocalCache\Roaming\Claude\claude_desktop_config.json`}},
		{bare, "claude-desktop", []string{`C:\Users\me\AppData\Roaming\Claude\claude_desktop_config.json`}},

		{linux, "claude-code", []string{"/home/me/.claude.json", "project /src/p/.mcp.json"}},
		{elsewhere, "claude-code", []string{"/claude/.claude.json", "project /src/p/.mcp.json"}},
		{windows, "claude-code", []string{`C:\Users\me\.claude.json`, `project D:\p\.mcp.json`}},

		{linux, "cursor", []string{"/home/me/.cursor/mcp.json", "project /src/p/.cursor/mcp.json"}},
		{windows, "cursor", []string{`C:\Users\me\.cursor\mcp.json`, `project D:\p\.cursor\mcp.json`}},

		{linux, "vscode", []string{
			"/home/me/.config/Code/User/mcp.json", "/home/me/.config/Code/User/settings.json",
			"/home/me/.config/Code - Insiders/User/mcp.json", "/home/me/.config/Code - Insiders/User/settings.json",
			"/home/me/.config/VSCodium/User/mcp.json", "/home/me/.config/VSCodium/User/settings.json",
			"project /src/p/.vscode/mcp.json", "project /src/p/.vscode/settings.json"}},
		{darwin, "vscode", []string{
			"/Users/me/Library/Application Support/Code/User/mcp.json", "/Users/me/Library/Application Support/Code/User/settings.json",
			"/Users/me/Library/Application Support/Code - Insiders/User/mcp.json", "/Users/me/Library/Application Support/Code - Insiders/User/settings.json",
			"/Users/me/Library/Application Support/VSCodium/User/mcp.json", "/Users/me/Library/Application Support/VSCodium/User/settings.json",
			"project /src/p/.vscode/mcp.json", "project /src/p/.vscode/settings.json"}},

		{linux, "windsurf", []string{"/home/me/.codeium/windsurf/mcp_config.json"}},
		{windows, "windsurf", []string{`C:\Users\me\.codeium\windsurf\mcp_config.json`}},

		{linux, "codex", []string{"/home/me/.codex/config.toml", "project /src/p/.codex/config.toml"}},
		{elsewhere, "codex", []string{"/codex/config.toml", "project /src/p/.codex/config.toml"}},
		{darwin, "codex", []string{"/Users/me/.codex/config.toml", "project /src/p/.codex/config.toml"}},
	} {
		t.Run(c.system.OS+" "+c.client, func(t *testing.T) {
			var got []string
			for _, p := range c.system.Places(c.client) {
				if p.Client != c.client || p.Title == "" {
					t.Errorf("%+v", p)
				}
				if p.Project != "" {
					p.Path = "project " + p.Path
				}
				got = append(got, p.Path)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestPlacesAreLookedAtOnce: in the home folder, the user's files are also the project's,
// but each is listed once.
func TestPlacesAreLookedAtOnce(t *testing.T) {
	home := System{OS: "linux", Home: "/home/me", Dir: "/home/me", Lookup: lookup(nil)}
	seen := map[string]bool{}
	for _, p := range home.Places("") {
		if seen[p.Path] {
			t.Errorf("%s is there twice", p.Path)
		}
		seen[p.Path] = true
	}
	if len(seen) < 10 {
		t.Errorf("only %d places", len(seen))
	}
}

func TestPlaceOfAnyFile(t *testing.T) {
	system := System{OS: "linux", Home: "/home/me", Dir: "/src/p", Lookup: lookup(nil)}
	for file, want := range map[string]string{
		"/home/me/.cursor/mcp.json":  "cursor Cursor ",
		"/src/p/.mcp.json":           "claude-code Claude Code /src/p",
		"/src/q/.mcp.json":           "file .mcp.json /src/q",
		"/src/q/.vscode/mcp.json":    "file mcp.json /src/q",
		"/src/q/servers/config.toml": "file config.toml /src/q/servers",
	} {
		p := system.Place(file)
		if got := fmt.Sprintf("%s %s %s", p.Client, p.Title, p.Project); got != want || p.Path != file {
			t.Errorf("%s: got %q %s, want %q", file, got, p.Path, want)
		}
	}
}
