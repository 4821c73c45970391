package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mcpx/cmd/internal/clients"
	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/internal/ansi"
	"mcpx/internal/app"
	"mcpx/internal/atomicfile"
	"mcpx/internal/plain"
)

// installCmd adds mcpx to the config of an MCP client.
type installCmd struct {
	Client  string `arg:"" help:"claude-desktop, claude-code, cursor, vscode, windsurf or codex."`
	Config  string `placeholder:"FILE" help:"Config file for the client. Without it: $$MCPX_CONFIG, ./mcpx.json, then ~/.config/mcpx/config.json."`
	Profile string `name:"schema" placeholder:"NAME" help:"The profile for the client (default)."`
	Name    string `default:"mcpx" placeholder:"NAME" help:"Name of mcpx in the client's config (${default})."`
	Move    bool   `xor:"change" help:"Also move the client's other servers to the config of mcpx."`
	Remove  bool   `xor:"change" help:"Remove mcpx from the client's config."`
	DryRun  bool   `help:"Only show the change."`
}

func (installCmd) Help() string {
	return `mcpx adds an entry to the client's config that starts mcpx with your config. The entry has the full paths of both. The old file
is kept as FILE.bak in the same folder. Comments and all other settings stay as they are. A second install changes nothing.

Examples:
  mcpx install cursor                   add mcpx to Cursor
  mcpx install cursor --dry-run         only show what would change
  mcpx install claude-desktop --move    also move its other servers to the config of mcpx
  mcpx install codex --config ~/work.json --name work
  mcpx install cursor --remove          remove mcpx from Cursor`
}

func (c *installCmd) Run(t *invocation) error {
	if !slices.Contains(clients.Names(), c.Client) {
		return unknownName("client", c.Client, clients.Names())
	}
	if c.Name == "" {
		return usageError{errors.New("--name must not be empty")}
	}
	place := thisSystem().UserFile(c.Client)
	if !filepath.IsAbs(place.Path) {
		return usageError{withHint(fmt.Errorf("the config of %s is in your home folder, which is not known", place.Title), "set HOME, or USERPROFILE on Windows")}
	}
	before, err := readIfExists(place.Path)
	if err != nil {
		return err
	}
	if c.Remove {
		change, err := clients.Uninstall(place, before, c.Name)
		if err := c.finish(t, change, clientError(err, place), "mcpx is not in the config of "+place.Title); err != nil {
			return err
		}
		noteMoved(t, change)
		return nil
	}
	entry, err := c.entry(t)
	if err != nil {
		return err
	}
	m := &move{profile: c.Profile, path: entry.Args[0], place: place, text: before, own: entry.Command}
	if c.Move {
		if err := m.plan(t); err != nil {
			return err
		}
	}
	change, err := clients.Install(place, before, entry, m.taken, m.path)
	if err == nil && len(m.taken) > 0 && !c.DryRun {
		if err := m.write(); err != nil { // before the client loses them
			return err
		}
	}
	return c.finish(t, change, clientError(err, place), "mcpx is already in the config of "+place.Title)
}

// noteMoved names the servers that the client loses with mcpx: those of the config of
// mcpx that the client itself does not have.
func noteMoved(t *invocation, change *clients.Change) {
	if len(change.Args) == 0 {
		return
	}
	path, profile := change.Args[0], ""
	if i := slices.Index(change.Args, "--schema"); i >= 0 && i+1 < len(change.Args) {
		profile = change.Args[i+1]
	}
	text, _ := readIfExists(path) // the note is only advice
	var lost []string
	_, err := edit.Text(app.ConfigHooks(), path, text, func(e *edit.Editor) error {
		names, _, err := e.Servers(profile)
		lost = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(change.Servers, name) })
		return err
	})
	if err == nil && len(lost) > 0 {
		fmt.Fprintf(t.Stderr, "note: %s does not have these servers, which stay in %s: %s. If --move moved them there, the first backup of its config (.bak) has them.\n",
			change.Place.Title, path, plain.Line(strings.Join(lost, ", ")))
	}
}

// clientError adds the client's file and advice to an error.
func clientError(err error, place clients.Place) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*clients.NotMcpxError)):
		return withHint(fmt.Errorf("%s: %w", place.Path, err), "choose another name with --name")
	}
	return withHint(fmt.Errorf("%s: %w", place.Path, err), "nothing was changed")
}

// readIfExists returns the text of a client's config, nil if there is none.
func readIfExists(path string) ([]byte, error) {
	text, err := atomicfile.Read(path, maxClientFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// entry returns how the client starts mcpx.
func (c *installCmd) entry(t *invocation) (clients.Entry, error) {
	program, err := ownProgram()
	if err != nil {
		return clients.Entry{}, err
	}
	path, err := c.configFile(t)
	if err != nil {
		return clients.Entry{}, err
	}
	args := []string{path}
	if t.isHTTP {
		args = append(args, "--stdio")
	}
	if c.Profile != "" {
		args = append(args, "--schema", c.Profile)
	}
	return clients.Entry{Name: c.Name, Command: program, Args: args}, nil
}

// configFile returns the full path of the config that the client gets. It must exist
// unless --move creates it.
func (c *installCmd) configFile(t *invocation) (string, error) {
	var err error
	path := c.Config
	switch {
	case path != "":
	case c.Move:
		path, err = configToAdd()
	default:
		if path, err = config.Find(os.LookupEnv); err != nil {
			err = usageError{withHint(errors.New("there is no config for mcpx yet"),
				"mcpx add NAME -- COMMAND creates one; mcpx install %s --move fills it with the servers of the client", c.Client)}
		}
	}
	if err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(absolute); errors.Is(err, fs.ErrNotExist) && c.Move {
		return absolute, nil
	}
	file, err := t.load(absolute)
	if err != nil {
		return "", err
	}
	if _, err := file.Profile(cmp.Or(c.Profile, "default")); err != nil {
		return "", usageError{withHint(err, "choose a profile with --schema")}
	}
	return absolute, nil
}

// move moves the servers of a client's config into the config of mcpx.
type move struct {
	profile, path string        // of mcpx
	place         clients.Place // of the client
	text          []byte        // the client's config
	own           string        // the command of mcpx itself

	taken []string // the names of the servers in the client's config
	notes []string
}

// plan finds the servers that can be moved, and prints notes about them.
func (m *move) plan(t *invocation) error {
	old, err := readIfExists(m.path)
	if err != nil {
		return err
	}
	if _, err := edit.Text(app.ConfigHooks(), m.path, old, m.edit); err != nil {
		return editError(err, m.path)
	}
	for _, note := range m.notes {
		fmt.Fprintf(t.Stderr, "note: %s\n", plain.Line(note))
	}
	return nil
}

// write adds the servers to the config of mcpx.
func (m *move) write() error {
	if _, err := makeFolder(m.path); err != nil {
		return err
	}
	if _, err := edit.File(app.ConfigHooks(), m.path, 0o600, m.edit); err != nil {
		return editError(err, m.path)
	}
	return nil
}

// edit adds the servers that the config of mcpx does not have.
func (m *move) edit(e *edit.Editor) error {
	names, servers, err := e.Servers(m.profile)
	if err != nil {
		return err
	}
	found := &clients.Collection{System: thisSystem()}
	for _, name := range names {
		found.Know(name, servers[name])
	}
	if m.taken, err = found.Take(m.place, m.text, m.own); err != nil {
		return clientError(err, m.place)
	}
	m.notes = found.Notes
	return found.AddTo(e, m.profile)
}

// finish shows a change and writes it.
func (c *installCmd) finish(t *invocation, change *clients.Change, err error, nothing string) error {
	if err != nil {
		return err
	}
	path := change.Place.Path
	if change.IsEmpty() {
		return t.Printf("%s (%s); nothing to do\n", nothing, path)
	}
	fmt.Fprintf(t.Stdout, "%s: %s\n", change.Place.Title, path)
	for _, line := range change.Lines {
		style := ansi.Green
		if strings.HasPrefix(line, "-") {
			style = ansi.Red
		}
		fmt.Fprintln(t.Stdout, "  "+t.Paint().Text(style, plain.Line(line)))
	}
	if c.DryRun {
		return t.Printf("nothing was changed (--dry-run)\n")
	}
	made, err := makeFolder(path)
	if err != nil {
		return err
	}
	if made { // a client without its folder is probably not installed
		fmt.Fprintf(t.Stderr, "note: %s does not seem to be installed: there was no folder %s\n", change.Place.Title, filepath.Dir(path))
	}
	result, err := atomicfile.Edit(path, atomicfile.Options{Limit: maxClientFile, Create: 0o600, Backup: true}, func(old []byte) ([]byte, error) {
		if !bytes.Equal(old, change.Before) {
			return nil, fmt.Errorf("%s: %w", path, atomicfile.ErrChanged)
		}
		return change.After, nil
	})
	if err != nil {
		return writeError(err)
	}
	if result.Backup != "" {
		fmt.Fprintf(t.Stdout, "backup: %s\n", result.Backup)
	}
	return t.Printf("next: %s\n", change.Next)
}
