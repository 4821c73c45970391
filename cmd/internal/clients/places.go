// Package clients knows the config files of MCP clients: where they are, how they
// are written, and what they say in mcpx's own words.
package clients

import (
	"path"
	"slices"
	"strings"
)

// System is what places depend on.
type System struct {
	OS     string // as runtime.GOOS has it
	Home   string // of the user
	Dir    string // the folder mcpx was started in
	Lookup func(name string) (value string, ok bool)
	Exists func(path string) bool // whether a file or folder is there; without it, none is
}

// Place is where a client keeps a config file.
type Place struct {
	Client  string // the client's short name
	Title   string // and the one people know
	Path    string
	Project string // the folder it is for; empty: it is the user's
}

// client is one that is known, and where its files are.
type client struct {
	name, title string
	user        func(s System) []string
	project     []string // below the folder of a project
}

// all are the known clients. Adding a row is the whole change.
var all = []client{
	{"claude-desktop", "Claude Desktop", func(s System) []string {
		places := []string{s.join(s.data(), "Claude", "claude_desktop_config.json")}
		if local := s.value("LOCALAPPDATA"); s.OS == "windows" && local != "" { // as the store installs it
			places = append(places, s.join(local, "Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude", "claude_desktop_config.json"))
		}
		return places
	}, nil},
	{"claude-code", "Claude Code", func(s System) []string {
		return []string{s.claudeFile()}
	}, []string{".mcp.json"}},
	{"cursor", "Cursor", func(s System) []string {
		return []string{s.join(s.Home, ".cursor", "mcp.json")}
	}, []string{".cursor/mcp.json"}},
	{"vscode", "VS Code", func(s System) []string {
		var places []string
		for _, edition := range []string{"Code", "Code - Insiders", "VSCodium"} {
			for _, file := range []string{"mcp.json", "settings.json"} {
				places = append(places, s.join(s.data(), edition, "User", file))
			}
		}
		return places
	}, []string{".vscode/mcp.json", ".vscode/settings.json"}},
	{"windsurf", "Windsurf", func(s System) []string {
		return []string{s.join(s.Home, ".codeium", "windsurf", "mcp_config.json")}
	}, nil},
	{"codex", "Codex", func(s System) []string {
		if folder := s.value("CODEX_HOME"); folder != "" {
			return []string{s.join(folder, "config.toml")}
		}
		return []string{s.join(s.Home, ".codex", "config.toml")}
	}, []string{".codex/config.toml"}},
}

// Names are the short names of the known clients.
func Names() []string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.name
	}
	return names
}

// Places are where the client's files would be, or those of every client if the
// name is empty; the user's before the project's.
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

// Place is the place of any file: a known one, or one of nobody's. What it says is
// meant for the folder it is in.
func (s System) Place(file string) Place {
	known := s.Places("")
	if at := slices.IndexFunc(known, func(p Place) bool { return p.Path == file }); at >= 0 {
		return known[at]
	}
	slashed := file
	if s.OS == "windows" {
		slashed = strings.ReplaceAll(file, `\`, "/")
	}
	folder := path.Dir(slashed)
	if strings.HasPrefix(path.Base(folder), ".") { // .cursor, .vscode
		folder = path.Dir(folder)
	}
	return Place{Client: "file", Title: path.Base(slashed), Path: file, Project: folder}
}

// data is the folder where programs keep what is the user's.
func (s System) data() string {
	switch s.OS {
	case "darwin":
		return s.join(s.Home, "Library", "Application Support")
	case "windows":
		if folder := s.value("APPDATA"); folder != "" {
			return folder
		}
		return s.join(s.Home, "AppData", "Roaming")
	}
	if folder := s.value("XDG_CONFIG_HOME"); folder != "" {
		return folder
	}
	return s.join(s.Home, ".config")
}

func (s System) value(name string) string {
	if s.Lookup == nil {
		return ""
	}
	value, _ := s.Lookup(name)
	return value
}

// join is filepath.Join for that system rather than this one.
func (s System) join(folder string, names ...string) string {
	if s.OS == "windows" {
		return strings.TrimRight(folder, `\/`) + `\` + strings.Join(names, `\`)
	}
	return path.Join(append([]string{folder}, names...)...)
}
