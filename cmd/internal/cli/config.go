package cli

import (
	"fmt"

	"mcpx/config"
)

// configCmd is about the config file alone; it starts nothing.
type configCmd struct {
	Check  configCheckCmd  `cmd:"" help:"Report every problem in the file."`
	Schema configSchemaCmd `cmd:"" help:"Print the JSON Schema of the file, for editors."`
	Show   configShowCmd   `cmd:"" help:"Print the file resolved, secrets hidden."`
}

type configFile struct {
	Path string `arg:"" optional:"" name:"config" help:"Config file."`
}

type configCheckCmd struct{ configFile }

// Run implements the command.
func (c *configCheckCmd) Run(t *terminal) error {
	file, err := load(c.Path)
	if err != nil {
		return err
	}
	warn(t.stderr, file.Warnings)
	for i := range file.Profiles {
		p := &file.Profiles[i]
		fmt.Fprintf(t.stdout, "%s: schema %q, %s, servers: %s\n", file.File, p.Name, p.Expose, names(p))
		for _, u := range p.Upstreams {
			if u.Err != nil {
				fmt.Fprintf(t.stderr, "warning: server %q will not start: %v\n", u.Name, u.Err)
			}
		}
	}
	return nil
}

type configSchemaCmd struct{}

// Run implements the command.
func (configSchemaCmd) Run(t *terminal) error {
	_, err := fmt.Fprintf(t.stdout, "%s\n", config.Schema())
	return err
}

type configShowCmd struct{ configFile }

// Run implements the command.
func (c *configShowCmd) Run(t *terminal) error {
	file, err := load(c.Path)
	if err != nil {
		return err
	}
	_, err = t.stdout.Write(file.Show())
	return err
}

func names(p *config.Profile) string {
	text := "none"
	for i, u := range p.Upstreams {
		if i == 0 {
			text = u.Name
			continue
		}
		text += ", " + u.Name
	}
	return text
}
