package cli

import (
	"context"
	"fmt"

	"mcpx/internal/ansi"
	"mcpx/internal/rawjson"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// resourcesCmd lists the resources of a server, or reads one.
type resourcesCmd struct {
	target
	URI    string `arg:"" optional:"" name:"uri" help:"URI of the resource to read; without it, mcpx lists all resources and templates."`
	Output string `short:"o" xor:"form" placeholder:"FILE|DIR" help:"Save the contents there."`
	JSON   bool   `xor:"form" help:"Print JSON, as the server sent it."`
}

func (resourcesCmd) Help() string {
	return `A template's URI has parts that you fill in: repo://{owner}/{name} becomes repo://me/mine.

Examples:
  mcpx resources mcpx.json files                              list the resources and templates
  mcpx resources mcpx.json files file:///notes.txt            read one
  mcpx resources mcpx.json files file:///logo.png --output logo.png
  mcpx resources mcpx.json files --json | jq '.resources[].uri'`
}

func (c *resourcesCmd) Run(t *terminal) error {
	return c.with(t, func(ctx context.Context, s *talk) error {
		u, err := s.Executor.Upstream(ctx, nil, c.Server)
		switch {
		case err != nil:
			return err
		case c.URI == "":
			return c.list(t, u)
		case !u.Has("resources"):
			return fmt.Errorf("server %q has no resources", u.Name)
		}
		params := rawjson.AppendMember([]byte("{"), "uri", rawjson.AppendString(nil, c.URI))
		result, err := s.ask(ctx, "resources/read", append(params, '}'))
		if err != nil {
			return err
		}
		return c.print(t, result)
	})
}

// list prints the resources and the resource templates.
func (c *resourcesCmd) list(t *terminal, u *live.Upstream) error {
	if c.JSON {
		b := rawjson.AppendMember([]byte("{"), "resources", items(u.Resources))
		return t.writeJSON(append(rawjson.AppendMember(b, "resourceTemplates", items(u.Templates)), '}'))
	}
	if len(u.Resources)+len(u.Templates) == 0 {
		return t.printf("%s has no resources\n", u.Name)
	}
	for i, kind := range []struct {
		title string
		items []lists.Item
	}{{"resource", u.Resources}, {"template", u.Templates}} {
		if len(kind.items) == 0 {
			continue
		}
		if i > 0 && len(u.Resources) > 0 {
			fmt.Fprintln(t.stdout)
		}
		list := t.table(kind.title, "name", "type", "description")
		for _, item := range kind.items {
			list.add(cell{text: item.Key, style: ansi.Cyan}, cell{text: member(item.Raw, "name")}, cell{text: member(item.Raw, "mimeType")}, cell{text: about(item.Raw)})
		}
		list.writeTo(t.stdout)
	}
	return nil
}

// print prints the contents of the resource.
func (c *resourcesCmd) print(t *terminal, result []byte) error {
	if c.JSON {
		return t.printJSON(result)
	}
	p := &printer{t: t, output: c.Output, name: c.Server}
	for contents := range rawjson.Elements(rawjson.Get(result, "contents")) {
		p.resource(contents)
	}
	return p.flush()
}
