package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"mcpx/executor"
	"mcpx/internal/app"
	"mcpx/internal/rawjson"
)

// target is what inspect and exec have in common: a server of a config.
type target struct {
	Path     string `arg:"" name:"config" help:"Config file."`
	Server   string `arg:"" help:"Name of a server, or mcpx for the built-in one."`
	Schema   string `default:"default" env:"MCPX_SCHEMA" help:"The schema of the config to use (${default})."`
	LogLevel string `enum:"debug,info,warn,error" default:"error" env:"MCPX_LOG_LEVEL" help:"debug, info, warn or error (${default})."`
}

// with runs use with the one server of the config that is asked for.
func (c *target) with(t *terminal, use func(ctx context.Context, e *executor.Executor) error) error {
	file, err := load(c.Path)
	if err != nil {
		return err
	}
	file.Logging.Level = c.LogLevel
	file.Limits.ResultTokens = 0 // a handle would end with the command
	p, err := file.Profile(c.Schema)
	if err != nil {
		return usageError{err}
	}
	for i := range p.Upstreams {
		if c.Server == p.Upstreams[i].Name {
			p.Upstreams = p.Upstreams[i : i+1] // the others need not start
			break
		}
	}
	a, err := app.New(file, c.Schema, t.stderr)
	if err != nil {
		return usageError{err}
	}
	return a.With(t.ctx, func(ctx context.Context) error {
		if c.Server == executor.Builtin {
			a.Executor.Settle(ctx, startTime) // it speaks of all the others
		}
		return use(ctx, a.Executor)
	})
}

// startTime is what a command about all servers gives them to start.
const startTime = 30 * time.Second

// inspectCmd prints what the tool inspect answers.
type inspectCmd struct {
	target
	Tool string `arg:"" optional:"" help:"Name of a tool, a glob, or a comma list."`
}

// Run implements the command.
func (c *inspectCmd) Run(t *terminal) error {
	return c.with(t, func(ctx context.Context, e *executor.Executor) error {
		text, err := e.Inspect(ctx, c.Server, c.Tool)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(t.stdout, text)
		return err
	})
}

// execCmd calls a tool.
type execCmd struct {
	target
	Tool      string   `arg:"" help:"Name of the tool."`
	Arguments []string `arg:"" optional:"" help:"A JSON object, @FILE, - for stdin, or key=value and key:=json pairs."`
	JSON      bool     `help:"Print the whole result as JSON."`
}

// Run implements the command.
func (c *execCmd) Run(t *terminal) error {
	arguments, err := c.arguments(t.stdin)
	if err != nil {
		return usageError{err}
	}
	return c.with(t, func(ctx context.Context, e *executor.Executor) error {
		result, err := e.Do(ctx, executor.Call{Server: c.Server, Tool: c.Tool, Arguments: arguments})
		if err != nil {
			return err
		}
		return c.print(t.stdout, result)
	})
}

// arguments reads them from where the command line says.
func (c *execCmd) arguments(stdin io.Reader) ([]byte, error) {
	switch {
	case len(c.Arguments) == 0:
		return nil, nil
	case len(c.Arguments) == 1 && c.Arguments[0] == "-":
		return io.ReadAll(stdin)
	case len(c.Arguments) == 1 && strings.HasPrefix(c.Arguments[0], "@"):
		return os.ReadFile(c.Arguments[0][1:])
	case len(c.Arguments) == 1 && strings.HasPrefix(strings.TrimSpace(c.Arguments[0]), "{"):
		return []byte(c.Arguments[0]), nil
	}
	return pairs(c.Arguments)
}

// pairs makes an object of key=value, a string, and key:=json.
func pairs(list []string) ([]byte, error) {
	object := []byte("{")
	for _, pair := range list {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSuffix(key, ":") == "" {
			return nil, fmt.Errorf("%q is neither key=value nor key:=json", pair)
		}
		raw := rawjson.AppendString(nil, value)
		if name, isJSON := strings.CutSuffix(key, ":"); isJSON {
			if key, raw = name, []byte(value); rawjson.Check(raw) != nil {
				return nil, fmt.Errorf("the value of %q is not JSON", pair)
			}
		}
		object = rawjson.AppendMember(object, key, raw)
	}
	return append(object, '}'), nil
}

// print shows a result as a person wants it: its text, and what else there is by
// name. A result that says of itself that it is an error fails the command.
func (c *execCmd) print(w io.Writer, result []byte) error {
	failed := string(rawjson.Get(result, "isError")) == "true"
	if c.JSON {
		fmt.Fprintf(w, "%s\n", result)
	} else {
		for item := range rawjson.Elements(rawjson.Get(result, "content")) {
			if text, ok := rawjson.String(rawjson.Get(item, "text")); ok {
				fmt.Fprintln(w, text)
				continue
			}
			kind, _ := rawjson.String(rawjson.Get(item, "type"))
			fmt.Fprintf(w, "[%s, %d bytes; --json shows it]\n", kind, len(item))
		}
	}
	if failed {
		return errors.New("the tool reports an error")
	}
	return nil
}
