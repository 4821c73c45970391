package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mcpx/internal/ansi"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/registry/lists"
)

// inspectCmd prints the output of the inspect tool.
type inspectCmd struct {
	target
	Tool string `arg:"" optional:"" help:"Name of a tool, a glob, or names separated by commas."`
	JSON bool   `help:"Print JSON with all details: a server with its tools, a tool's definition, or an array of definitions."`
}

func (inspectCmd) Help() string {
	return `Examples:
  mcpx inspect mcpx.json time                     one line per tool, with its parameters
  mcpx inspect mcpx.json time get_current_time    one tool in full
  mcpx inspect mcpx.json github 'issue*'          the tools that match
  mcpx inspect mcpx.json time --json | jq '.tools[].name'
  mcpx inspect mcpx.json mcpx                     the built-in tools, and all servers with their state`
}

func (c *inspectCmd) Run(t *invocation) error {
	c.startAll = c.Tool == "" && !c.JSON // the listing of the built-in server has their states
	return c.with(t, func(ctx context.Context, s *talk) error {
		if c.JSON {
			return c.json(ctx, t, s)
		}
		text, absent, err := s.Executor.Describe(ctx, nil, c.Server, c.Tool)
		if err != nil {
			return err
		}
		if t.Person() {
			printListing(t, text)
		} else {
			fmt.Fprintln(t.Stdout, text)
		}
		return linesError(absent)
	})
}

// linesError returns an error of several lines, nil if there are none.
func linesError(lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// printListing prints the text for a person: definitions over several lines, names in color.
func printListing(t *invocation, text string) {
	for i, line := range strings.Split(text, "\n") {
		name, rest, isTool := strings.Cut(line, "(")
		if rawjson.Kind([]byte(line)) == '{' {
			_ = t.PrintJSON([]byte(line))
			continue
		}
		shown := plain.Text(line)
		switch {
		case i == 0:
			shown = t.Paint().Text(ansi.Bold, shown)
		case isTool && !strings.Contains(name, " "):
			shown = t.Paint().Text(ansi.Cyan, plain.Line(name)) + plain.Line("("+rest)
		}
		fmt.Fprintln(t.Stdout, shown)
	}
}

// json prints all definitions, as the upstream sent them.
func (c *inspectCmd) json(ctx context.Context, t *invocation, s *talk) error {
	m, err := s.Executor.Match(ctx, nil, c.Server, c.Tool)
	u := m.Upstream
	switch {
	case err != nil:
		return err
	case m.IsName:
		return t.WriteJSON(m.Tools[0].Raw)
	case c.Tool != "":
		_ = t.WriteJSON(definitions(m.Tools))
		return linesError(m.Absent)
	}
	b := rawjson.AppendMember([]byte("{"), "name", rawjson.AppendString(nil, u.Name))
	b = rawjson.AppendMember(b, "state", rawjson.AppendString(nil, string(u.State)))
	if u.Instructions != "" {
		b = rawjson.AppendMember(b, "instructions", rawjson.AppendString(nil, u.Instructions))
	}
	return t.WriteJSON(append(rawjson.AppendMember(b, "tools", definitions(m.Tools)), '}'))
}

// definitions returns tools as their upstream sent them, each with its signature.
func definitions(tools []*lists.Tool) []byte {
	return jsonArray(tools, func(tool *lists.Tool) []byte {
		return rawjson.With(tool.Raw, "signature", rawjson.AppendString(nil, tool.Name+"("+tool.Signature()+")"))
	})
}
