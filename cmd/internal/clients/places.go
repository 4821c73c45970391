// Package clients reads and writes the config files of MCP clients: where they are, how
// a server in them becomes one of mcpx (mcpx import), and how mcpx is added to them
// (mcpx install).
package clients

import (
	"path"
	"slices"
	"strings"
)

// System is the computer that mcpx runs on.
type System struct {
	OS     string // as runtime.GOOS has it
	Home   string // the user's home folder
	Dir    string // the folder mcpx was started in
	Lookup func(name string) (value string, ok bool)
	Exists func(path string) bool // reports whether a file or folder exists; nil: none does
}

// Place is a config file of a client. It may not exist.
type Place struct {
	Client  string // the client's short name
	Title   string // its full name
	Path    string
	Project string // the folder it is for; empty: it is the user's
	IsNamed bool   // the user named this file
}

// client is a known client: where its files are, and how mcpx is added to them.
type client struct {
	name, title string
	user        func(s System) []string // the user's files
	project     []string                // the project's files, relative to its folder
	key         string                  // key of the servers in a JSON file; empty: the file is TOML
	kind        string                  // the "type" that an entry must have; empty: none
	next        string                  // what to do after mcpx was added
}

// all has the known clients. Adding a row is the whole change.
var all = []client{{
	"claude-desktop", "Claude Desktop", func(s System) []string {
		places := []string{s.join(s.data(), "Claude", "claude_desktop_config.json")}
		if local := s.value("LOCALAPPDATA"); s.OS == "windows" && local != "" { // installed from the store
			places = append(places, s.join(local, "Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude", "claude_desktop_config.json"))
		}
		return places
	}, nil,
	"mcpServers", "", "quit Claude Desktop and start it again",
}, {
	"claude-code", "Claude Code", func(s System) []string { return []string{s.claudeFile()} }, []string{".mcp.json"},
	"mcpServers", "stdio", "start a new session of claude; /mcp shows the servers",
}, {
	"cursor", "Cursor", func(s System) []string { return []string{s.join(s.Home, ".cursor", "mcp.json")} }, []string{".cursor/mcp.json"},
	"mcpServers", "", "restart Cursor; Settings > MCP shows the servers",
}, {
	"vscode", "VS Code", func(s System) []string {
		var places []string
		for _, edition := range []string{"Code", "Code - Insiders", "VSCodium"} {
			for _, file := range []string{"mcp.json", "settings.json"} {
				places = append(places, s.join(s.data(), edition, "User", file))
			}
		}
		return places
	}, []string{".vscode/mcp.json", ".vscode/settings.json"},
	"servers", "stdio", `run "MCP: List Servers" in the Command Palette of VS Code and start it`,
}, {
	"windsurf", "Windsurf", func(s System) []string {
		return []string{s.join(s.Home, ".codeium", "windsurf", "mcp_config.json")}
	}, nil,
	"mcpServers", "", "restart Windsurf, or refresh its list of MCP servers",
}, {
	"codex", "Codex", func(s System) []string {
		return []string{s.join(s.folderOf("CODEX_HOME", ".codex"), "config.toml")}
	}, []string{".codex/config.toml"},
	"", "", codexNext,
}}

// codexNext includes a setting that shows the two tools to Codex's newest models at
// once. mcpx does not write it, because older versions of Codex do not know the key.
const codexNext = `start a new session of codex; /mcp shows the servers
note: newer models of Codex see MCP tools only after a search. To show the tools of mcpx at once, add this to the same file:
  [features.code_mode]
  direct_only_tool_namespaces = ["mcp__mcpx"]`

// clientOf returns the client of a place; the zero client for any other file.
func clientOf(p Place) client {
	for _, c := range all {
		if c.name == p.Client {
			return c
		}
	}
	return client{}
}

// Names returns the short names of the known clients.
func Names() []string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	return names
}

// Places returns the places of a client, or of every client if the name is empty. The
// user's places come before the project's.
func (s System) Places(name string) []Place {
	var places []Place
	add := func(c client, path, project string) {
		if !slices.ContainsFunc(places, func(p Place) bool { return p.Path == path }) {
			places = append(places, Place{Client: c.name, Title: c.title, Path: path, Project: project})
		}
	}
	for _, c := range all {
		if name != "" && name != c.name {
			continue
		}
		for _, path := range c.user(s) {
			add(c, path, "")
		}
		for _, path := range c.project {
			add(c, s.join(s.Dir, strings.Split(path, "/")...), s.Dir)
		}
	}
	return places
}

// Place returns the place of any file. An unknown file is for the folder it is in.
func (s System) Place(file string) Place {
	known := s.Places("")
	if at := slices.IndexFunc(known, func(p Place) bool { return p.Path == file }); at >= 0 {
		return known[at]
	}
	name := file
	if s.OS == "windows" {
		name = slashed(file)
	}
	folder := path.Dir(name)
	if strings.HasPrefix(path.Base(folder), ".") { // .cursor, .vscode
		folder = path.Dir(folder)
	}
	return Place{Client: "file", Title: path.Base(name), Path: file, Project: folder}
}

// UserFile returns the file in which a client keeps the user's servers: one that
// exists, or else the one that the client would create. The client must be known.
func (s System) UserFile(client string) Place {
	var files []Place
	for _, p := range s.Places(client) {
		if p.Project == "" && !isSettings(p.Path) {
			files = append(files, p)
		}
	}
	for _, path := range []func(p Place) string{
		func(p Place) string { return p.Path },
		func(p Place) string { return p.Path[:strings.LastIndex(p.Path, s.separator())] }, // its folder
	} {
		if i := slices.IndexFunc(files, func(p Place) bool { return s.Exists != nil && s.Exists(path(p)) }); i >= 0 {
			return files[i]
		}
	}
	return files[0]
}

// isSettings reports whether a file has an editor's settings, with or without servers.
func isSettings(file string) bool { return strings.HasSuffix(file, "settings.json") }

// claudeFile is where Claude Code keeps the servers of the user and of projects.
func (s System) claudeFile() string {
	return s.join(s.folderOf("CLAUDE_CONFIG_DIR", ""), ".claude.json")
}

// claudeSettings is where Claude Code keeps the user's settings.
func (s System) claudeSettings() string {
	return s.join(s.folderOf("CLAUDE_CONFIG_DIR", ".claude"), "settings.json")
}

// data returns the folder where programs keep the user's files.
func (s System) data() string {
	switch s.OS {
	case "darwin":
		return s.join(s.Home, "Library", "Application Support")
	case "windows":
		return s.folderOf("APPDATA", "AppData", "Roaming")
	}
	return s.folderOf("XDG_CONFIG_HOME", ".config")
}

// folderOf returns the folder that a variable names, or else one in the user's home.
func (s System) folderOf(variable string, inHome ...string) string {
	if folder := s.value(variable); folder != "" {
		return folder
	}
	return s.join(s.Home, inHome...)
}

func (s System) value(name string) string {
	if s.Lookup == nil {
		return ""
	}
	value, _ := s.Lookup(name)
	return value
}

// join is filepath.Join for that system, which may be another one in tests.
func (s System) join(folder string, names ...string) string {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	if s.OS == "windows" {
		return strings.Join(append([]string{strings.TrimRight(folder, `\/`)}, names...), `\`)
	}
	return path.Join(append([]string{folder}, names...)...)
}

func (s System) separator() string {
	if s.OS == "windows" {
		return `\`
	}
	return "/"
}
