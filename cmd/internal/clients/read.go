package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"mcpx/config"
	"mcpx/internal/rawjson"
)

// entry is a server as a client wrote it.
type entry struct {
	name    string
	raw     []byte
	project string // the folder it is for; empty: it is the user's
	off     bool   // switched off, though not in what it says of itself
}

// contents are what a file says.
type contents struct {
	servers []entry
	inputs  map[string]string   // what VS Code asks the user for: description by id
	off     map[string][]string // what Claude Code has switched off, by project
}

// read finds the servers of a file, wherever clients write them.
func read(path string, data []byte, project string) (contents, error) {
	raw, err := standardize(path, data)
	if err != nil {
		return contents{}, err
	}
	if rawjson.Kind(raw) != '{' {
		return contents{}, errors.New("expected an object with servers")
	}
	c := contents{inputs: map[string]string{}, off: offByProject(raw, "disabledMcpServers")}
	c.object(raw, project)
	c.object(rawjson.Get(raw, "mcp"), project) // VS Code's settings
	for folder, settings := range rawjson.Members(rawjson.Get(raw, "projects")) {
		c.object(settings, folder) // Claude Code
	}
	for _, schema := range rawjson.Members(rawjson.Get(raw, "schemas")) {
		c.object(schema, project) // mcpx's own
	}
	return c, nil
}

// object takes what stands below one of the keys that clients use.
func (c *contents) object(raw []byte, project string) {
	for _, key := range []string{"mcpServers", "mcp_servers", "servers"} {
		list := rawjson.Get(raw, key)
		for name, server := range rawjson.Members(list) {
			c.servers = append(c.servers, entry{name: name, raw: server, project: project})
		}
		for server := range rawjson.Elements(list) {
			name, _ := rawjson.String(rawjson.Get(server, "name"))
			c.servers = append(c.servers, entry{name: name, raw: rawjson.With(server, "name", nil), project: project})
		}
	}
	for input := range rawjson.Elements(rawjson.Get(raw, "inputs")) {
		id, _ := rawjson.String(rawjson.Get(input, "id"))
		c.inputs[id], _ = rawjson.String(rawjson.Get(input, "description"))
	}
}

// standardize makes plain JSON of TOML, and of JSON with comments. A file that is
// no JSON may be TOML under any name.
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
	if err := config.CheckDepth(data); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	raw, err := hujson.Standardize(bytes.Clone(data)) // it blanks out comments in place
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
	return json.Marshal(map[string]any{"mcp_servers": value["mcp_servers"]})
}

// reason is what a parser says, without its own name.
func reason(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "hujson: "), "toml: ")
}
