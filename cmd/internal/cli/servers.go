package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"mcpx/cmd/internal/terminal"
	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/internal/ansi"
	"mcpx/internal/app"
	"mcpx/internal/atomicfile"
	"mcpx/internal/jsonc"
	"mcpx/internal/nearest"
	"mcpx/internal/parts/lock/lockfile"
	"mcpx/internal/plain"
)

// listCmd lists the servers of a config. It starts nothing.
type listCmd struct {
	configFile
	Profile string `name:"schema" env:"MCPX_SCHEMA" placeholder:"NAME" help:"Only this profile; without it, every profile."`
	JSON    bool   `help:"Print the list as JSON."`
}

func (listCmd) Help() string {
	return `No server is started, and secrets are hidden.

Examples:
  mcpx list                             the servers of the default config
  mcpx list mcpx.json --schema work     one profile of it
  mcpx list mcpx.json --json | jq -r '.servers[] | select(.enabled) | .name'`
}

// serverList is what list --json prints.
type serverList struct {
	File    string         `json:"file"`
	Servers []listedServer `json:"servers"`

	hasProfiles bool // the servers are of several profiles
}

// listedServer is a server of the file.
type listedServer struct {
	Profile        string   `json:"schema"`
	ProfileEnabled bool     `json:"schema_enabled"`
	Name           string   `json:"name"`
	Enabled        bool     `json:"enabled"`
	Transport      string   `json:"transport"`
	Command        string   `json:"command,omitempty"`
	Args           []string `json:"args,omitempty"`
	URL            string   `json:"url,omitempty"`
	Description    string   `json:"description,omitempty"`
}

func (c *listCmd) Run(t *invocation) error {
	file, err := t.load(c.Path)
	if err != nil {
		return err
	}
	warn(t.Stderr, file.Warnings)
	list := serverList{File: file.File, Servers: []listedServer{}, hasProfiles: len(file.Profiles) > 1 && c.Profile == ""}
	var names []string
	for i := range file.Profiles {
		p := &file.Profiles[i]
		names = append(names, p.Name)
		for _, u := range p.All() {
			if c.Profile == "" || c.Profile == p.Name {
				list.Servers = append(list.Servers, listed(p, &u))
			}
		}
	}
	switch {
	case c.Profile != "" && !slices.Contains(names, c.Profile):
		return usageError{unknownProfile(&edit.UnknownProfileError{Name: c.Profile, Known: names}, file.File)}
	case c.JSON:
		return t.Encode(list)
	}
	return list.print(t)
}

// listed returns a server without its secrets.
func listed(p *config.Profile, u *config.Upstream) listedServer {
	public := u.Public()
	return listedServer{
		Profile: p.Name, ProfileEnabled: p.Enabled, Name: u.Name, Enabled: !u.Disabled(), Transport: transportOf(u),
		Command: public.Command, Args: public.Args, URL: public.URL, Description: u.Description,
	}
}

// transportOf returns how a server is reached.
func transportOf(u *config.Upstream) string {
	if u.Transport == config.TransportRemote {
		return string(config.TransportHTTP) // tried first
	}
	return string(u.Transport)
}

// print shows the list as a table.
func (l serverList) print(t *invocation) error {
	if len(l.Servers) == 0 {
		return t.Printf("no servers; mcpx add NAME -- COMMAND adds one\n")
	}
	list := t.Table("profile", "server", "state", "transport", "command or url", "description")
	for _, s := range l.Servers {
		list.Add(s.row()...)
	}
	if !l.hasProfiles {
		list.DropFirst()
	}
	list.Print(t.Stdout)
	return nil
}

func (s listedServer) row() []terminal.Cell {
	profile, state := s.Profile, terminal.Cell{Text: "enabled", Style: ansi.Green}
	if !s.ProfileEnabled {
		profile += " (not enabled)"
	}
	if !s.Enabled {
		state = terminal.Cell{Text: "disabled", Style: ansi.Faint}
	}
	target := cmp.Or(s.URL, plain.Shell(append([]string{s.Command}, s.Args...)...))
	return []terminal.Cell{{Text: profile}, {Text: s.Name, Style: ansi.Cyan}, state, {Text: s.Transport}, {Text: target}, {Text: s.Description}}
}

// removeCmd removes a server from the config.
type removeCmd struct{ serverEdit }

func (removeCmd) Help() string {
	return `Comments and formatting of the file stay as they are. A comment on the server's last line is removed too.

Examples:
  mcpx remove time                     from the default config
  mcpx remove mcpx.json time           from this one
  mcpx remove time --schema work       from another profile of it`
}

func (c *removeCmd) Run(t *invocation) error {
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

func (c *enableCmd) Run(t *invocation) error {
	changed, err := c.edit(t, "enabled %s in %s", (*edit.Editor).Enable)
	if err != nil || !changed || c.NoCheck {
		return err
	}
	return c.connectOnce(t)
}

// disableCmd switches a server of the config off.
type disableCmd struct{ serverEdit }

func (disableCmd) Help() string {
	return `The server stays in the file, with "disabled": true. A running mcpx is not affected until it is started again.

Examples:
  mcpx disable time
  mcpx disable mcpx.json time --schema work`
}

func (c *disableCmd) Run(t *invocation) error {
	_, err := c.edit(t, "disabled %s in %s", (*edit.Editor).Disable)
	return err
}

// serverEdit is embedded by the commands that change one server of a config.
type serverEdit struct {
	configFile
	Server  string `arg:"" help:"Name of the server."`
	Profile string `name:"schema" env:"MCPX_SCHEMA" placeholder:"NAME" help:"The server's profile (default)."`
}

// edit changes the server and prints done, a format for its name and the file.
func (c *serverEdit) edit(t *invocation, done string, change func(e *edit.Editor, profile, name string) error) (changed bool, err error) {
	result, err := edit.File(app.ConfigHooks(), c.Path, 0, func(e *edit.Editor) error { return change(e, c.Profile, c.Server) })
	if err != nil {
		return false, editError(err, c.Path)
	}
	if !result.Changed {
		state, _, _ := strings.Cut(done, " ")
		done = "%s is already " + state + " in %s"
	}
	fmt.Fprintf(t.Stderr, done+"\n", c.Server, c.Path)
	return result.Changed, nil
}

// editError adds advice to an error of a config edit.
func editError(err error, path string) error {
	if server, ok := errors.AsType[*edit.UnknownServerError](err); ok {
		return unknownServer(server, path)
	}
	if profile, ok := errors.AsType[*edit.UnknownProfileError](err); ok {
		return usageError{unknownProfile(profile, path)}
	}
	switch {
	case errors.As(err, new(*jsonc.Error)):
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
	case errors.Is(err, atomicfile.ErrChanged):
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
		return withHint(text, "profile %s has it: --schema %s", err.Elsewhere[0], plain.Shell(err.Elsewhere[0]))
	case near != "":
		return withHint(text, "did you mean %s?", near)
	case len(err.Known) > 0:
		return withHint(text, "servers: %s", strings.Join(err.Known, ", "))
	}
	return withHint(text, "profile %s has no servers", err.Profile)
}

// unknownProfile adds the existing profiles to the error.
func unknownProfile(err *edit.UnknownProfileError, path string) error {
	text := fmt.Errorf("%w in %s", err, path)
	if err.Only {
		return withHint(text, `the file lists its servers directly, so its only profile is "default"; put them below "profiles" to have several`)
	}
	return withHint(text, "profiles: %s", strings.Join(err.Known, ", "))
}

// connectOnce connects to the server and prints what check would say. A server that fails is
// only a warning.
func (c *serverEdit) connectOnce(t *invocation) error {
	file, err := t.load(c.Path)
	if err != nil {
		return err
	}
	file.ForOneCommand("error")
	profile := cmp.Or(c.Profile, "default")
	p, err := file.Profile(profile)
	if err != nil {
		_, err = fmt.Fprintf(t.Stderr, "warning: %s was not started: profile %s is not enabled\n", c.Server, profile)
		return err
	}
	p.Upstreams = slices.DeleteFunc(p.Upstreams, func(u config.Upstream) bool { return u.Name != c.Server })
	return t.connect(file, profile, func(lists []app.ToolLists) error {
		r := newCheckReport(lists)
		r.print(t)
		if r.Failed > 0 {
			fmt.Fprintf(t.Stderr, "warning: %s is in the config, but does not work yet\n", c.Server)
		}
		if _, err := os.Stat(lockfile.Path(file.File)); err == nil {
			fmt.Fprintf(t.Stderr, "hint: there is a %s, so %s waits for review: mcpx pin %s\n", lockfile.Name, c.Server, plain.Shell(c.Server))
		}
		return nil
	})
}
