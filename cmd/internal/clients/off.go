package clients

import (
	"strings"

	"mcpx/internal/rawjson"
)

// Claude Code writes which servers are switched off beside the servers: for each
// project in its own file, and for those of a project's .mcp.json in its settings
// too. What was approved (enabledMcpjsonServers) does not matter here: a server
// that nobody was asked about is not switched off.

// offByProject are the names that Claude Code's own file has under the keys, by the
// folder of the project.
func offByProject(raw []byte, keys ...string) map[string][]string {
	off := map[string][]string{}
	for folder, state := range rawjson.Members(rawjson.Get(raw, "projects")) {
		for _, key := range keys {
			off[slashed(folder)] = append(off[slashed(folder)], texts(rawjson.Get(state, key))...)
		}
	}
	return off
}

// offInShared are the names of a project's .mcp.json that are switched off.
func (s System) offInShared(project string, readFile func(path string) ([]byte, error)) []string {
	read := func(file string) []byte {
		data, err := readFile(file)
		if err != nil {
			return nil // there is none
		}
		raw, _ := standardize(file, data)
		return raw
	}
	off := offByProject(read(s.claudeFile()), "disabledMcpServers", "disabledMcpjsonServers")[slashed(project)]
	for _, file := range []string{
		s.claudeSettings(),
		s.join(project, ".claude", "settings.json"),
		s.join(project, ".claude", "settings.local.json"),
	} {
		off = append(off, texts(rawjson.Get(read(file), "disabledMcpjsonServers"))...)
	}
	return off
}

// claudeFile is where Claude Code keeps the servers of the user and of projects.
func (s System) claudeFile() string {
	if folder := s.value("CLAUDE_CONFIG_DIR"); folder != "" {
		return s.join(folder, ".claude.json")
	}
	return s.join(s.Home, ".claude.json")
}

// claudeSettings are those of the user.
func (s System) claudeSettings() string {
	if folder := s.value("CLAUDE_CONFIG_DIR"); folder != "" {
		return s.join(folder, "settings.json")
	}
	return s.join(s.Home, ".claude", "settings.json")
}

// slashed is a folder as Claude Code writes it on every system.
func slashed(folder string) string { return strings.ReplaceAll(folder, `\`, "/") }

// texts are the strings of an array.
func texts(array []byte) []string {
	var list []string
	for element := range rawjson.Elements(array) {
		if text, ok := rawjson.String(element); ok {
			list = append(list, text)
		}
	}
	return list
}
