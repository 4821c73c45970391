package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"mcpx/config"
	"mcpx/internal/app"
	"mcpx/internal/jsonc"
	"mcpx/internal/plain"
)

// configCmd groups commands about the config file. They start nothing.
type configCmd struct {
	Check  configCheckCmd  `cmd:"" help:"Report every problem in the file."`
	Schema configSchemaCmd `cmd:"" help:"Print the JSON Schema of the file, for editors."`
	Show   configShowCmd   `cmd:"" help:"Print the config as mcpx understands it: defaults filled in, secrets hidden."`
}

func (configCmd) Help() string {
	return `Examples:
  mcpx config check mcpx.json             every problem, with line, column and hint
  mcpx config show mcpx.json              the config with its defaults, without secrets
  mcpx config schema > mcpx.schema.json   for completion and checks in an editor`
}

// configFile is embedded by the commands that take a config. If it is the first argument, it
// becomes the flag before kong reads the words.
type configFile struct {
	Path string `name:"config" placeholder:"FILE" help:"Config file; it may also be the first argument. Without it: $$MCPX_CONFIG, ./mcpx.json, then ~/.config/mcpx/config.json."`
}

type configCheckCmd struct {
	configFile
	JSON bool `help:"Print the problems, profiles and servers as JSON."`
}

// configReport is the output of config check --json.
type configReport struct {
	File     string          `json:"file,omitempty"`
	Problems []jsonc.Problem `json:"problems"`
	Warnings []jsonc.Problem `json:"warnings"`
	Profiles []configProfile `json:"schemas"`
}

type configProfile struct {
	Name     string         `json:"name"`
	Enabled  bool           `json:"enabled"`
	Expose   string         `json:"expose"`
	Servers  []configServer `json:"servers"`
	Disabled []string       `json:"disabled"` // servers that are disabled in the file
}

type configServer struct {
	Name    string `json:"name"`
	Problem string `json:"problem,omitempty"` // why it will not start
}

func (c *configCheckCmd) Run(t *invocation) error {
	file, err := t.load(c.Path)
	if c.JSON {
		return c.json(t, file, err)
	}
	if err != nil {
		return err
	}
	warn(t.Stderr, file.Warnings)
	for i := range file.Profiles {
		p := &file.Profiles[i]
		fmt.Fprintf(t.Stdout, "%s: profile %q, %s\n", file.File, p.Name, summary(p))
		for _, u := range p.Upstreams {
			if u.Err != nil {
				fmt.Fprintf(t.Stderr, "warning: server %q will not start: %v\n", u.Name, u.Err)
			}
		}
	}
	return nil
}

// json prints the report, also of a file with problems.
func (c *configCheckCmd) json(t *invocation, file *config.Config, err error) error {
	r := configReport{File: c.Path, Problems: []jsonc.Problem{}, Warnings: []jsonc.Problem{}, Profiles: []configProfile{}}
	var wrong *jsonc.Error
	switch {
	case errors.As(err, &wrong):
		r.Problems, r.Warnings = wrong.Problems, append(r.Warnings, wrong.Warnings...)
		_ = t.Encode(r)
		return usageError{fmt.Errorf("%s in %s", plain.Count(len(r.Problems), "problem"), wrong.Problems[0].File)}
	case err != nil:
		return err
	}
	r.File, r.Warnings = file.File, append(r.Warnings, file.Warnings...)
	for _, p := range file.Profiles {
		s := configProfile{Name: p.Name, Enabled: p.Enabled, Expose: string(p.Expose), Servers: []configServer{}, Disabled: append([]string{}, p.Disabled()...)}
		for _, u := range p.Upstreams {
			server := configServer{Name: u.Name}
			if u.Err != nil {
				server.Problem = u.Err.Error()
			}
			s.Servers = append(s.Servers, server)
		}
		r.Profiles = append(r.Profiles, s)
	}
	return t.Encode(r)
}

type configSchemaCmd struct{}

func (configSchemaCmd) Run(t *invocation) error {
	return t.Printf("%s\n", app.ConfigHooks().Schema())
}

type configShowCmd struct{ configFile }

func (c *configShowCmd) Run(t *invocation) error {
	file, err := t.load(c.Path)
	if err != nil {
		return err
	}
	return t.Printf("%s", file.Show())
}

// summary describes a profile in a few words.
func summary(p *config.Profile) string {
	names := make([]string, len(p.Upstreams))
	for i, u := range p.Upstreams {
		names[i] = u.Name
	}
	text := fmt.Sprintf("%s, servers: %s", p.Expose, cmp.Or(strings.Join(names, ", "), "none"))
	if !p.Enabled {
		text = "not enabled, " + text
	}
	if off := p.Disabled(); len(off) > 0 {
		text += "; disabled: " + strings.Join(off, ", ")
	}
	return text
}
