package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"mcpx/cmd/internal/terminal"
	"mcpx/executor"
	"mcpx/internal/ansi"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// promptsCmd lists the prompts of a server, or gets one.
type promptsCmd struct {
	target
	Prompt    string   `arg:"" optional:"" help:"Name of the prompt to get; without it, mcpx lists all prompts."`
	Arguments []string `arg:"" optional:"" help:"Its arguments: key=value pairs, a JSON object of strings, @FILE, or - for stdin."`
	Output    string   `short:"o" xor:"form" placeholder:"FILE|DIR" help:"Save the prompt's images, audio and files there; if it has none, save its text."`
	JSON      bool     `xor:"form" help:"Print JSON, as the server sent it."`
}

func (promptsCmd) Help() string {
	return `Examples:
  mcpx prompts mcpx.json github                               list the prompts
  mcpx prompts mcpx.json github review_pr number=12 style=short
  mcpx prompts mcpx.json github review_pr '{"number": "12"}'
  mcpx prompts mcpx.json github --json | jq '.[].name'`
}

func (c *promptsCmd) Run(t *invocation) error {
	given, err := readArguments(t, c.Arguments)
	if err != nil {
		return err
	}
	arguments, err := given.texts()
	if err != nil {
		return err
	}
	return c.with(t, func(ctx context.Context, s *talk) error {
		u, err := s.Executor.Upstream(ctx, nil, c.Server)
		if err != nil {
			return err
		}
		if c.Prompt == "" {
			return c.list(t, u)
		}
		params, err := promptParams(u, c.Prompt, arguments)
		if err != nil {
			return err
		}
		result, err := s.ask(ctx, "prompts/get", params)
		if err != nil {
			return err
		}
		return c.print(t, result)
	})
}

// list prints the prompts and their arguments.
func (c *promptsCmd) list(t *invocation, u *live.Upstream) error {
	switch {
	case c.JSON:
		return t.WriteJSON(items(u.Prompts))
	case len(u.Prompts) == 0:
		return t.Printf("%s has no prompts\n", u.Name)
	}
	list := t.Table("prompt", "arguments", "description")
	for _, p := range u.Prompts {
		var names []string
		for argument := range rawjson.Elements(rawjson.Get(p.Raw, "arguments")) {
			name := rawjson.GetString(argument, "name")
			if !isTrue(argument, "required") {
				name += "?"
			}
			names = append(names, name)
		}
		list.Add(terminal.Cell{Text: p.Key, Style: ansi.Cyan}, terminal.Cell{Text: strings.Join(names, ", ")}, terminal.Cell{Text: about(p.Raw)})
	}
	list.Print(t.Stdout)
	return nil
}

// promptParams returns the params of prompts/get. Missing arguments are found before
// anything is sent.
func promptParams(u *live.Upstream, name string, arguments map[string]string) ([]byte, error) {
	at := slices.IndexFunc(u.Prompts, func(p lists.Item) bool { return p.Key == name })
	if at < 0 {
		return nil, executor.UnknownPrompt(u, name)
	}
	for argument := range rawjson.Elements(rawjson.Get(u.Prompts[at].Raw, "arguments")) {
		key := rawjson.GetString(argument, "name")
		if _, isGiven := arguments[key]; !isGiven && isTrue(argument, "required") {
			return nil, fmt.Errorf("prompt %q needs the argument %q; write %s=VALUE", name, plain.Line(key), plain.Line(key))
		}
	}
	return rawjson.Encode(struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments,omitempty"` // some servers reject an empty object
	}{name, arguments}), nil
}

// print prints the messages of a prompt, each below its role.
func (c *promptsCmd) print(t *invocation, result []byte) error {
	if c.JSON {
		return t.PrintJSON(result)
	}
	p := &terminal.Printer{Terminal: &t.Terminal, Output: c.Output, Name: c.Prompt, Link: c.link(t)}
	for message := range rawjson.Elements(rawjson.Get(result, "messages")) {
		if c.Output == "" {
			p.Tell("%s", t.Paint().Text(ansi.Bold, plain.Line(rawjson.GetString(message, "role"))+":"))
		}
		p.Content(rawjson.Get(message, "content"))
	}
	return p.Flush()
}

// about returns the description of a definition, or its title, on one line.
func about(raw []byte) string {
	return strings.Join(strings.Fields(cmp.Or(rawjson.GetString(raw, "description"), rawjson.GetString(raw, "title"))), " ")
}

// isTrue reports whether a member of an object is true.
func isTrue(object []byte, key string) bool { return string(rawjson.Get(object, key)) == "true" }

// items returns definitions as an array.
func items(list []lists.Item) []byte {
	return jsonArray(list, func(item lists.Item) []byte { return item.Raw })
}

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

func (c *resourcesCmd) Run(t *invocation) error {
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
func (c *resourcesCmd) list(t *invocation, u *live.Upstream) error {
	if c.JSON {
		b := rawjson.AppendMember([]byte("{"), "resources", items(u.Resources))
		return t.WriteJSON(append(rawjson.AppendMember(b, "resourceTemplates", items(u.Templates)), '}'))
	}
	if len(u.Resources)+len(u.Templates) == 0 {
		return t.Printf("%s has no resources\n", u.Name)
	}
	for i, kind := range []struct {
		title string
		items []lists.Item
	}{{"resource", u.Resources}, {"template", u.Templates}} {
		if len(kind.items) == 0 {
			continue
		}
		if i > 0 && len(u.Resources) > 0 {
			fmt.Fprintln(t.Stdout)
		}
		list := t.Table(kind.title, "name", "type", "description")
		for _, item := range kind.items {
			list.Add(terminal.Cell{Text: item.Key, Style: ansi.Cyan}, terminal.Cell{Text: rawjson.GetString(item.Raw, "name")}, terminal.Cell{Text: rawjson.GetString(item.Raw, "mimeType")}, terminal.Cell{Text: about(item.Raw)})
		}
		list.Print(t.Stdout)
	}
	return nil
}

// print prints the contents of the resource.
func (c *resourcesCmd) print(t *invocation, result []byte) error {
	if c.JSON {
		return t.PrintJSON(result)
	}
	p := &terminal.Printer{Terminal: &t.Terminal, Output: c.Output, Name: c.Server}
	for contents := range rawjson.Elements(rawjson.Get(result, "contents")) {
		p.Resource(contents)
	}
	return p.Flush()
}
