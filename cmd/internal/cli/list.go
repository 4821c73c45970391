package cli

import (
	"cmp"
	"fmt"
	"strings"

	"mcpx/config"
	"mcpx/internal/ansi"
)

// listCmd lists the servers of a config. It starts nothing.
type listCmd struct {
	configFile
	Schema string `env:"MCPX_SCHEMA" placeholder:"NAME" help:"Only this schema of the config; without it, all of them."`
	JSON   bool   `help:"Print the list as JSON."`
}

// Help is shown below the flags.
func (listCmd) Help() string {
	return `No server is started, and secrets are hidden.

Examples:
  mcpx list                             the servers of the config that is found without naming one
  mcpx list mcpx.json --schema work     one schema of it
  mcpx list mcpx.json --json | jq -r '.servers[] | select(.enabled) | .name'`
}

// serverList is what list --json prints.
type serverList struct {
	File    string         `json:"file"`
	Servers []listedServer `json:"servers"`
}

// listedServer is a server as the file has it.
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

// Run implements the command.
func (c *listCmd) Run(t *terminal) error {
	file, err := t.load(c.Path)
	if err != nil {
		return err
	}
	warn(t.stderr, file.Warnings)
	list := serverList{File: file.File, Servers: []listedServer{}}
	found := false
	var names []string
	for i := range file.Profiles {
		p := &file.Profiles[i]
		names = append(names, p.Name)
		if c.Schema != "" && c.Schema != p.Name {
			continue
		}
		found = true
		for _, u := range p.All() {
			list.Servers = append(list.Servers, listed(p, &u))
		}
	}
	switch {
	case !found:
		return usageError{unknownSchema(&config.UnknownSchemaError{Name: c.Schema, Known: names}, file.File)}
	case c.JSON:
		return t.encode(list)
	}
	return list.print(t, len(file.Profiles) > 1 && c.Schema == "")
}

// listed returns a server without its secrets.
func listed(p *config.Profile, u *config.Upstream) listedServer {
	public := u.Public()
	s := listedServer{
		Schema: p.Name, SchemaEnabled: p.Enabled, Name: u.Name, Enabled: !u.Disabled(), Transport: string(u.Transport),
		Command: public.Command, Args: public.Args, URL: public.URL, Description: u.Description,
	}
	if u.Transport == config.TransportRemote {
		s.Transport = string(config.TransportHTTP) // which is tried first
	}
	return s
}

// print shows the list as a table.
func (l serverList) print(t *terminal, schemas bool) error {
	if len(l.Servers) == 0 {
		_, err := fmt.Fprintln(t.stdout, "no servers; mcpx add NAME -- COMMAND adds one")
		return err
	}
	list := table{paint: t.paint(), width: width(t.stdout)}
	titles := []string{"server", "state", "transport", "command or url", "description"}
	if schemas {
		titles = append([]string{"schema"}, titles...)
	}
	list.head(titles...)
	for _, s := range l.Servers {
		row := s.row()
		if schemas {
			row = append([]cell{{text: s.schema()}}, row...)
		}
		list.add(row...)
	}
	return list.writeTo(t.stdout)
}

func (s listedServer) schema() string {
	if s.SchemaEnabled {
		return s.Schema
	}
	return s.Schema + " (not enabled)"
}

func (s listedServer) row() []cell {
	state := cell{text: "enabled", style: ansi.Green}
	if !s.Enabled {
		state = cell{text: "disabled", style: ansi.Faint}
	}
	return []cell{{text: s.Name, style: ansi.Cyan}, state, {text: s.Transport}, {text: cmp.Or(s.URL, s.commandLine())}, {text: s.Description}}
}

// commandLine returns the command as a shell takes it.
func (s listedServer) commandLine() string {
	words := []string{quoteShell(s.Command)}
	for _, arg := range s.Args {
		words = append(words, quoteShell(arg))
	}
	return strings.Join(words, " ")
}
