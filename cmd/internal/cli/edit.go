package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/internal/app"
	"mcpx/internal/editfile"
	"mcpx/internal/jsonfile"
	"mcpx/internal/lockfile"
	"mcpx/internal/nearest"
	"mcpx/internal/plain"
)

// removeCmd removes a server from the config.
type removeCmd struct{ serverEdit }

func (removeCmd) Help() string {
	return `Comments and formatting of the file stay as they are. A comment on the server's last line is removed too.

Examples:
  mcpx remove time                     from the default config
  mcpx remove mcpx.json time           from this one
  mcpx remove time --schema work       from another schema of it`
}

func (c *removeCmd) Run(t *terminal) error {
	_, err := c.edit(t, "removed %s from %s", (*edit.Editor).Remove)
	return err
}

// enableCmd switches a server of the config on.
type enableCmd struct {
	serverEdit
	NoCheck bool `help:"Do not connect to the server."`
}

func (enableCmd) Help() string {
	return `mcpx connects to the server once and prints what "mcpx check" would say. If that fails, the server stays enabled.

Examples:
  mcpx enable time
  mcpx enable mcpx.json time --no-check`
}

func (c *enableCmd) Run(t *terminal) error {
	done, err := c.edit(t, "enabled %s in %s", (*edit.Editor).Enable)
	if err != nil || !done.changed || c.NoCheck {
		return err
	}
	return connectOnce(t, done)
}

// disableCmd switches a server of the config off.
type disableCmd struct{ serverEdit }

func (disableCmd) Help() string {
	return `The server stays in the file, with "disabled": true. A running mcpx is not affected until it is started again.

Examples:
  mcpx disable time
  mcpx disable mcpx.json time --schema work`
}

func (c *disableCmd) Run(t *terminal) error {
	_, err := c.edit(t, "disabled %s in %s", (*edit.Editor).Disable)
	return err
}

// serverEdit is embedded by the commands that change one server of a config.
type serverEdit struct {
	configFile
	Server string `arg:"" help:"Name of the server."`
	Schema string `env:"MCPX_SCHEMA" placeholder:"NAME" help:"The server's schema (default)."`
}

// edited is a server that a command has changed.
type edited struct {
	path, schema, name string
	changed            bool
}

// edit changes the server and prints done, a format for its name and the file.
func (c *serverEdit) edit(t *terminal, done string, change func(e *edit.Editor, schema, name string) error) (edited, error) {
	e := edited{path: c.Path, schema: c.Schema, name: c.Server}
	result, err := edit.File(e.path, 0, func(editor *edit.Editor) error {
		return change(editor, e.schema, e.name)
	})
	if err != nil {
		return e, editError(err, e.path)
	}
	if e.changed = result.Changed; !e.changed {
		state, _, _ := strings.Cut(done, " ")
		done = "%s is already " + state + " in %s"
	}
	fmt.Fprintf(t.stderr, done+"\n", e.name, e.path)
	return e, nil
}

// editError adds advice to an error of a config edit.
func editError(err error, path string) error {
	if server, ok := errors.AsType[*edit.UnknownServerError](err); ok {
		return unknownServer(server, path)
	}
	if schema, ok := errors.AsType[*edit.UnknownSchemaError](err); ok {
		return usageError{unknownSchema(schema, path)}
	}
	switch {
	case errors.As(err, new(*jsonfile.Error)):
		return usageError{withHint(err, "fix the file first; nothing was changed")}
	case errors.As(err, new(*edit.ChangeError)):
		return usageError{err}
	case errors.As(err, new(*edit.ExistsError)):
		return withHint(fmt.Errorf("%w in %s", err, path), "--force replaces it")
	case errors.Is(err, fs.ErrNotExist):
		return usageError{withHint(fmt.Errorf("%s does not exist", path), "mcpx add NAME -- COMMAND creates a config")}
	}
	return writeError(err)
}

// writeError adds advice to an error of writing a file.
func writeError(err error) error {
	switch {
	case errors.Is(err, editfile.ErrChanged):
		return withHint(err, "nothing was changed; run the command again")
	case errors.Is(err, fs.ErrPermission):
		return withHint(err, "nothing was changed; check the permissions of the file and its folder")
	}
	return err
}

// unknownServer adds similar names to the error.
func unknownServer(err *edit.UnknownServerError, path string) error {
	text := fmt.Errorf("%w in %s", err, path)
	near := nearest.Word(err.Name, err.Known)
	switch {
	case len(err.Elsewhere) > 0:
		return withHint(text, "schema %s has it: --schema %s", err.Elsewhere[0], plain.Shell(err.Elsewhere[0]))
	case near != "":
		return withHint(text, "did you mean %s?", near)
	case len(err.Known) > 0:
		return withHint(text, "servers: %s", strings.Join(err.Known, ", "))
	}
	return withHint(text, "schema %s has no servers", err.Schema)
}

// unknownSchema adds the existing schemas to the error.
func unknownSchema(err *edit.UnknownSchemaError, path string) error {
	text := fmt.Errorf("%w in %s", err, path)
	if err.Only {
		return withHint(text, `the file lists its servers directly, so its only schema is "default"; put them below "schemas" to have several`)
	}
	return withHint(text, "schemas: %s", strings.Join(err.Known, ", "))
}

// connectOnce connects to one server of the config and prints what check would say. A
// server that fails is only a warning.
func connectOnce(t *terminal, e edited) error {
	file, err := t.load(e.path)
	if err != nil {
		return err
	}
	file.Logging.Level = "error"
	schema := cmp.Or(e.schema, "default")
	p, err := file.Profile(schema)
	if err != nil {
		_, err = fmt.Fprintf(t.stderr, "warning: %s was not started: schema %s is not enabled\n", e.name, schema)
		return err
	}
	p.Upstreams = slices.DeleteFunc(p.Upstreams, func(u config.Upstream) bool { return u.Name != e.name })
	return t.connect(file, schema, func(lists []app.ToolLists) error {
		r := newCheckReport(lists)
		if err := r.print(t); err != nil {
			return err
		}
		if r.Failed > 0 {
			fmt.Fprintf(t.stderr, "warning: %s is in the config, but does not work yet\n", e.name)
		}
		if _, err := os.Stat(lockfile.Path(file.File)); err == nil {
			fmt.Fprintf(t.stderr, "hint: there is a %s, so %s waits for review: mcpx pin %s\n", lockfile.Name, e.name, plain.Shell(e.name))
		}
		return nil
	})
}
