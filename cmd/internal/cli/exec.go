package cli

import (
	"context"
	"errors"

	"mcpx/cmd/internal/terminal"
	"mcpx/executor"
	"mcpx/internal/app"
	"mcpx/internal/rawjson"
	"mcpx/internal/selection"
)

// execCmd calls a tool.
type execCmd struct {
	target
	Tool      string   `arg:"" help:"Name of the tool."`
	Arguments []string `arg:"" optional:"" help:"A JSON object, @FILE, - for stdin, or key=value and key:=json pairs."`
	Output    string   `short:"o" xor:"form" placeholder:"FILE|DIR" help:"Save the result's images, audio and files there; if it has none, save its text."`
	Select    string   `placeholder:"FIELDS" help:"Print only these fields and rows of a JSON result, or the lines that match /PATTERN/."`
	JSON      bool     `xor:"form" help:"Print the whole result as JSON, as the server sent it."`
}

func (execCmd) Help() string {
	return `The tool's schema decides the type of key=value: count=3 is a number if the tool expects a number, and text if it expects
text. Repeat a key to make an array. Use a dot to set a member of an object: filter.state=open.

key:=json passes JSON unchanged. key:=@FILE passes the JSON in a file.

Examples:
  mcpx exec mcpx.json time get_current_time timezone=Europe/Paris
  mcpx exec mcpx.json github list_issues owner=me repo=mine labels=bug labels=urgent limit=5
  mcpx exec mcpx.json github list_issues owner=me repo=mine --select 'number, title where comments > 5 limit 20'
  mcpx exec mcpx.json db query '{"sql": "select 1"}'
  mcpx exec mcpx.json db query @query.json
  echo '{"sql": "select 1"}' | mcpx exec mcpx.json db query -
  mcpx exec mcpx.json browser screenshot url=https://example.com --output page.png
  mcpx exec mcpx.json db query sql='select 1' --json | jq .structuredContent

Exit code: 0 if the tool answered, 1 if it or the call failed, 2 if the command line or the config is wrong. Ctrl-C cancels the call.`
}

func (c *execCmd) Run(t *invocation) error {
	arguments, err := readArguments(t, c.Arguments)
	if err != nil {
		return err
	}
	if c.Select != "" {
		if _, err := selection.Parse(c.Select); err != nil {
			return usageError{err}
		}
	}
	c.startAll = app.NeedsUpstreams(c.Tool)
	return c.with(t, func(ctx context.Context, s *talk) error {
		result, err := c.call(ctx, s, newCaller(t, s), arguments)
		if err != nil {
			return err
		}
		return c.print(t, result)
	})
}

// call calls the tool and shows its progress.
func (c *execCmd) call(ctx context.Context, s *talk, who *caller, arguments arguments) ([]byte, error) {
	tool, err := s.Executor.Tool(ctx, nil, c.Server, c.Tool)
	if err != nil {
		return nil, err
	}
	raw, err := arguments.fit(tool.Input)
	if err != nil {
		return nil, err
	}
	var selected []byte
	if c.Select != "" {
		selected = rawjson.AppendString(nil, c.Select)
	}
	var news terminal.Progress
	stop := s.status.Show(func() string { return news.Text(c.Tool) })
	defer stop()
	return s.Executor.Call(ctx, executor.Call{
		Client: who, Server: c.Server, Tool: c.Tool, Arguments: raw, Select: selected, Progress: news.Note,
	})
}

// print shows a result. A result that reports an error fails the command.
func (c *execCmd) print(t *invocation, result []byte) error {
	failed := isTrue(result, "isError")
	var err error
	if c.JSON {
		err = t.PrintJSON(result)
	} else {
		p := &terminal.Printer{Terminal: &t.Terminal, Output: c.Output, Name: c.Tool, Link: c.link(t), Failed: failed}
		err = p.Result(result)
	}
	if err == nil && failed {
		return errors.New("the tool reports an error")
	}
	return err
}
