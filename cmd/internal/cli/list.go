package cli

import (
	"cmp"
	"slices"

	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/internal/ansi"
	"mcpx/internal/plain"
)

// listCmd lists the servers of a config. It starts nothing.
type listCmd struct {
	configFile
	Schema string `env:"MCPX_SCHEMA" placeholder:"NAME" help:"Only this schema; without it, every schema."`
	JSON   bool   `help:"Print the list as JSON."`
}

func (listCmd) Help() string {
	return `No server is started, and secrets are hidden.

Examples:
  mcpx list                             the servers of the default config
  mcpx list mcpx.json --schema work     one schema of it
  mcpx list mcpx.json --json | jq -r '.servers[] | select(.enabled) | .name'`
}

// serverList is what list --json prints.
type serverList struct {
	File    string         `json:"file"`
	Servers []listedServer `json:"servers"`

	hasSchemas bool // the servers are of several schemas
}

// listedServer is a server of the file.
type listedServer struct {
	Schema        string   `json:"schema"`
	SchemaEnabled bool     `json:"schema_enabled"`
	Name          string   `json:"name"`
	Enabled       bool     `json:"enabled"`
	Transport     string   `json:"transport"`
	Command       string   `json:"command,omitempty"`
	Args          []string `json:"args,omitempty"`
	URL           string   `json:"url,omitempty"`
	Description   string   `json:"description,omitempty"`
}

func (c *listCmd) Run(t *terminal) error {
	file, err := t.load(c.Path)
	if err != nil {
		return err
	}
	warn(t.stderr, file.Warnings)
	list := serverList{File: file.File, Servers: []listedServer{}, hasSchemas: len(file.Profiles) > 1 && c.Schema == ""}
	var names []string
	for i := range file.Profiles {
		p := &file.Profiles[i]
		names = append(names, p.Name)
		for _, u := range p.All() {
			if c.Schema == "" || c.Schema == p.Name {
				list.Servers = append(list.Servers, listed(p, &u))
			}
		}
	}
	switch {
	case c.Schema != "" && !slices.Contains(names, c.Schema):
		return usageError{unknownSchema(&edit.UnknownSchemaError{Name: c.Schema, Known: names}, file.File)}
	case c.JSON:
		return t.encode(list)
	}
	return list.print(t)
}

// listed returns a server without its secrets.
func listed(p *config.Profile, u *config.Upstream) listedServer {
	public := u.Public()
	return listedServer{
		Schema: p.Name, SchemaEnabled: p.Enabled, Name: u.Name, Enabled: !u.Disabled(), Transport: transportOf(u),
		Command: public.Command, Args: public.Args, URL: public.URL, Description: u.Description,
	}
}

// transportOf returns how a server is reached.
func transportOf(u *config.Upstream) string {
	if u.Transport == config.TransportRemote {
		return string(config.TransportHTTP) // tried first
	}
	return string(u.Transport)
}

// print shows the list as a table.
func (l serverList) print(t *terminal) error {
	if len(l.Servers) == 0 {
		return t.printf("no servers; mcpx add NAME -- COMMAND adds one\n")
	}
	list := t.table("schema", "server", "state", "transport", "command or url", "description")
	for _, s := range l.Servers {
		list.add(s.row()...)
	}
	if !l.hasSchemas {
		list.dropFirst()
	}
	list.writeTo(t.stdout)
	return nil
}

func (s listedServer) row() []cell {
	schema, state := s.Schema, cell{text: "enabled", style: ansi.Green}
	if !s.SchemaEnabled {
		schema += " (not enabled)"
	}
	if !s.Enabled {
		state = cell{text: "disabled", style: ansi.Faint}
	}
	target := cmp.Or(s.URL, plain.Shell(append([]string{s.Command}, s.Args...)...))
	return []cell{{text: schema}, {text: s.Name, style: ansi.Cyan}, state, {text: s.Transport}, {text: target}, {text: s.Description}}
}
