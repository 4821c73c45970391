package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"mcpx/config"
	"mcpx/internal/jsonc"
	"mcpx/internal/rawjson"
)

// entry is a server in a config.
type entry struct {
	name    string
	raw     []byte
	project string // the folder it is for; empty: it is the user's
}

// contents is what a client's file has.
type contents struct {
	servers []entry
	inputs  map[string]string // descriptions of VS Code's inputs, by ID
	off     map[string]bool   // disabled servers, by project and name
}

// read finds the servers in a file, wherever clients write them.
func read(path string, data []byte, project string) (contents, error) {
	raw, err := standardize(path, data)
	if err != nil {
		return contents{}, err
	}
	if rawjson.Kind(raw) != '{' {
		return contents{}, errors.New("expected an object with servers")
	}
	c := contents{inputs: map[string]string{}, off: map[string]bool{}}
	c.addObject(raw, project)
	c.addObject(rawjson.Get(raw, "mcp"), project) // VS Code's settings
	for folder, settings := range rawjson.Members(rawjson.Get(raw, "projects")) {
		c.addObject(settings, folder) // Claude Code
		c.switchOff(folder, rawjson.Get(settings, "disabledMcpServers"))
	}
	for _, key := range config.ProfileKeys { // mcpx itself
		for _, profile := range rawjson.Members(rawjson.Get(raw, key)) {
			c.addObject(profile, project)
		}
	}
	return c, nil
}

// addObject adds the servers below the keys that clients use.
func (c *contents) addObject(raw []byte, project string) {
	for _, key := range []string{"mcpServers", "mcp_servers", "servers"} {
		list := rawjson.Get(raw, key)
		for name, server := range rawjson.Members(list) {
			c.servers = append(c.servers, entry{name, server, project})
		}
		for server := range rawjson.Elements(list) {
			name, _ := rawjson.String(rawjson.Get(server, "name"))
			c.servers = append(c.servers, entry{name, rawjson.With(server, "name", nil), project})
		}
	}
	for input := range rawjson.Elements(rawjson.Get(raw, "inputs")) {
		id, _ := rawjson.String(rawjson.Get(input, "id"))
		c.inputs[id], _ = rawjson.String(rawjson.Get(input, "description"))
	}
}

// switchOff notes the servers of a project that are switched off. Claude Code writes
// folders with slashes on every system.
func (c *contents) switchOff(project string, names []byte) {
	for _, name := range stringsIn(names) {
		c.off[slashed(project)+"\n"+name] = true
	}
}

// isOff reports whether the project disables the server.
func (c *contents) isOff(project, name string) bool { return c.off[slashed(project)+"\n"+name] }

// switchOffShared notes which servers of a project's .mcp.json are switched off. Claude
// Code has them in its own file and in three files of settings. The list of approved
// servers (enabledMcpjsonServers) does not matter: a server that nobody was asked about
// is not switched off.
func (c *contents) switchOffShared(s System, project string, readFile func(path string) ([]byte, error)) {
	load := func(file string) []byte {
		data, _ := readFile(file) // a missing file switches nothing off
		raw, _ := standardize(file, data)
		return raw
	}
	for folder, state := range rawjson.Members(rawjson.Get(load(s.claudeFile()), "projects")) {
		c.switchOff(folder, rawjson.Get(state, "disabledMcpServers"))
		c.switchOff(folder, rawjson.Get(state, "disabledMcpjsonServers"))
	}
	for _, file := range []string{
		s.claudeSettings(), s.join(project, ".claude", "settings.json"), s.join(project, ".claude", "settings.local.json"),
	} {
		c.switchOff(project, rawjson.Get(load(file), "disabledMcpjsonServers"))
	}
}

// isShared reports whether a file is a project's .mcp.json.
func isShared(file string) bool { return path.Base(slashed(file)) == ".mcp.json" }

func slashed(folder string) string { return strings.ReplaceAll(folder, `\`, "/") }

// stringsIn returns the strings of an array.
func stringsIn(array []byte) (list []string) {
	for element := range rawjson.Elements(array) {
		if text, ok := rawjson.String(element); ok {
			list = append(list, text)
		}
	}
	return list
}

// standardize returns TOML, or JSON with comments, as plain JSON. TOML may be in a file
// of any name.
func standardize(path string, data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the file is empty")
	}
	if strings.HasSuffix(strings.ToLower(path), ".toml") {
		raw, err := fromTOML(data)
		if err != nil {
			return nil, fmt.Errorf("not valid TOML: %s", reason(err))
		}
		return raw, nil
	}
	if err := jsonc.CheckDepth(data); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	raw, err := hujson.Standardize(bytes.Clone(data)) // it overwrites comments in place
	if err == nil {
		return raw, nil
	}
	if raw, err := fromTOML(data); err == nil {
		return raw, nil
	}
	return nil, fmt.Errorf("not valid JSON: %s", reason(err))
}

func fromTOML(data []byte) ([]byte, error) {
	var value map[string]any
	if err := toml.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{tomlServers: value[tomlServers]})
}

// reason returns what a parser says, without its name.
func reason(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "hujson: "), "toml: ")
}
