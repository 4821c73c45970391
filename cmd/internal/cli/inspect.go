package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"mcpx/executor"
	"mcpx/internal/ansi"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// inspectCmd prints what the tool inspect answers.
type inspectCmd struct {
	target
	Tool string `arg:"" optional:"" help:"Name of a tool, a glob, or a comma list."`
	JSON bool   `help:"Print everything known, as JSON: a server with its tools, a tool's definition, or an array of several."`
}

// Help is shown below the flags.
func (inspectCmd) Help() string {
	return `Examples:
  mcpx inspect mcpx.json time                     one line a tool, with its parameters
  mcpx inspect mcpx.json time get_current_time    one tool in full
  mcpx inspect mcpx.json github 'issue*'          the tools that match
  mcpx inspect mcpx.json time --json | jq '.tools[].name'
  mcpx inspect mcpx.json mcpx                     the built-in tools`
}

// Run implements the command.
func (c *inspectCmd) Run(t *terminal) error {
	return c.with(t, func(ctx context.Context, s *talk) error {
		if c.JSON {
			return c.json(ctx, t, s)
		}
		text, absent, err := s.Executor.Describe(ctx, c.Server, c.Tool)
		if err != nil {
			return err
		}
		if t.person() {
			err = c.show(t, text)
		} else {
			_, err = fmt.Fprintln(t.stdout, text)
		}
		return cmp.Or(err, missing(absent))
	})
}

// missing is the failure of a command that showed only some of what was asked for.
func missing(absent []string) error {
	if len(absent) == 0 {
		return nil
	}
	return errors.New(strings.Join(absent, "\n"))
}

// show is for a person: definitions over several lines, names in colour.
func (c *inspectCmd) show(t *terminal, text string) error {
	for i, line := range strings.Split(text, "\n") {
		name, rest, isTool := strings.Cut(line, "(")
		var err error
		switch {
		case rawjson.Kind([]byte(line)) == '{':
			err = t.printJSON([]byte(line))
		case i == 0:
			_, err = fmt.Fprintln(t.stdout, t.paint().Text(ansi.Bold, plain.Text(line)))
		case isTool && !strings.Contains(name, " "):
			_, err = fmt.Fprintln(t.stdout, t.paint().Text(ansi.Cyan, plain.Line(name))+plain.Line("("+rest))
		default:
			_, err = fmt.Fprintln(t.stdout, plain.Text(line))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// json prints everything known, as the upstream sent it.
func (c *inspectCmd) json(ctx context.Context, t *terminal, s *talk) error {
	u, err := s.Executor.Upstream(ctx, c.Server)
	if err != nil {
		return err
	}
	tools, one, err := s.Executor.Tools(ctx, c.Server, c.Tool)
	switch {
	case err != nil:
		return err
	case one:
		return t.writeJSON(tools[0].Raw)
	case c.Tool != "":
		return cmp.Or(t.writeJSON(definitions(tools)), missing(executor.Absent(u, c.Tool)))
	}
	b := rawjson.AppendMember([]byte("{"), "name", rawjson.AppendString(nil, u.Name))
	b = rawjson.AppendMember(b, "state", rawjson.AppendString(nil, string(u.State)))
	if u.Instructions != "" {
		b = rawjson.AppendMember(b, "instructions", rawjson.AppendString(nil, u.Instructions))
	}
	return t.writeJSON(append(rawjson.AppendMember(b, "tools", definitions(tools)), '}'))
}

// definitions are tools as their upstream sent them, each with its signature.
func definitions(tools []*registry.Tool) []byte {
	list := []byte("[")
	for i, tool := range tools {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, rawjson.With(tool.Raw, "signature", rawjson.AppendString(nil, tool.Name+"("+tool.Signature()+")"))...)
	}
	return append(list, ']')
}
