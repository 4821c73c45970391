package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"mcpx/cmd/internal/clients"
	"mcpx/cmd/internal/terminal"
	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/internal/app"
	"mcpx/internal/atomicfile"
	"mcpx/internal/plain"
)

// importCmd creates a config from the configs of MCP clients.
type importCmd struct {
	From   []string `sep:"none" placeholder:"CLIENT|FILE" help:"Only this client: claude-desktop, claude-code, cursor, vscode, windsurf or codex; or any file. May be given several times. Without it, every client."`
	Output string   `short:"o" placeholder:"FILE" help:"Write the config to this file instead of stdout. Only you can read it."`
	Force  bool     `help:"Overwrite the file."`
}

func (importCmd) Help() string {
	return `mcpx looks where the clients keep their configs: yours, and those of the project in this folder. References such as
${TOKEN} are kept. Client configs are not modified.

Examples:
  mcpx import                                    show the files found, and the config
  mcpx import --output mcpx.json                 write it
  mcpx import --from cursor --from codex         only from these two
  mcpx import --from ~/project/.mcp.json -o mcpx.json --force

Exit code: 0 if servers were found, 1 if none were or the file exists, 2 if the command line or a named file is wrong.`
}

func (c *importCmd) Run(t *invocation) error {
	found := &clients.Collection{System: thisSystem()}
	places, err := c.places(found.System)
	if err != nil {
		return err
	}
	found.Add(places, func(path string) ([]byte, error) { return config.ReadFile(path, maxClientFile) })
	if err := c.tell(t, found); err != nil {
		return err
	}
	if found.Len() == 0 {
		return nothing(found, places)
	}
	text, err := edit.Text(app.ConfigHooks(), c.Output, nil, func(e *edit.Editor) error { return found.AddTo(e, "") })
	if err != nil {
		return err
	}
	if c.Output == "" {
		return t.Printf("%s", text)
	}
	if err := c.write(t, text); err != nil {
		return err
	}
	fmt.Fprintf(t.Stderr, "wrote %s to %s; next: mcpx check %s\n", plain.Count(found.Len(), "server"), c.Output, plain.Shell(c.Output))
	return nil
}

// maxClientFile is far above a list of servers: Claude Code keeps much else in the
// same file.
const maxClientFile = 64 << 20

func thisSystem() clients.System {
	home, _ := os.UserHomeDir()
	dir, _ := os.Getwd()
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	return clients.System{OS: runtime.GOOS, Home: home, Dir: dir, Lookup: os.LookupEnv, Exists: exists}
}

// places returns where to look.
func (c *importCmd) places(system clients.System) ([]clients.Place, error) {
	if len(c.From) == 0 {
		return placesOf(system, ""), nil
	}
	var places []clients.Place
	for _, from := range c.From {
		if slices.Contains(clients.Names(), from) {
			places = append(places, placesOf(system, from)...)
			continue
		}
		if info, err := os.Stat(from); err != nil || info.IsDir() {
			return nil, usageError{fmt.Errorf("--from %s is neither a file nor one of %s", from, strings.Join(clients.Names(), ", "))}
		}
		path, err := filepath.Abs(from)
		if err != nil {
			return nil, usageError{err}
		}
		place := system.Place(path)
		place.IsNamed = true
		places = append(places, place)
	}
	return places, nil
}

// placesOf returns the places of a client, or of every client. Without a home folder, only
// those of the project are known.
func placesOf(system clients.System, client string) []clients.Place {
	return slices.DeleteFunc(system.Places(client), func(p clients.Place) bool { return !filepath.IsAbs(p.Path) })
}

// tell prints to stderr what was found, and what was changed. A file of --from that
// cannot be read is an error.
func (c *importCmd) tell(t *invocation, found *clients.Collection) error {
	for _, f := range found.Files {
		switch {
		case f.Err != nil && f.IsNamed:
			return usageError{fmt.Errorf("%s: %w", f.Path, f.Err)}
		case f.Err != nil:
			fmt.Fprintf(t.Stderr, "warning: %s: %s: %s\n", f.Title, f.Path, plain.Line(f.Err.Error()))
		case len(f.Servers) == 0:
			fmt.Fprintf(t.Stderr, "%s: %s: no servers\n", f.Title, f.Path)
		default:
			fmt.Fprintf(t.Stderr, "%s: %s: %s\n", f.Title, f.Path, plain.Line(strings.Join(f.Servers, ", ")))
		}
	}
	for _, note := range found.Notes {
		fmt.Fprintf(t.Stderr, "note: %s\n", plain.Line(note))
	}
	return nil
}

// nothing returns the error of a search without results.
func nothing(found *clients.Collection, places []clients.Place) error {
	if len(found.Files) > 0 {
		return errors.New("no server to import")
	}
	var b strings.Builder
	b.WriteString("no config of an MCP client was found; looked at:")
	for _, p := range places {
		fmt.Fprintf(&b, "\n  %s: %s", p.Title, p.Path)
	}
	return withHint(errors.New(b.String()), "name any other file with --from FILE, or add servers one by one: mcpx add NAME -- COMMAND")
}

// write writes the config, and creates its folder. The config may hold keys, so that only its
// owner may read it.
func (c *importCmd) write(t *invocation, text []byte) error {
	_, err := os.Lstat(c.Output)
	switch {
	case terminal.IsFolder(c.Output):
		return usageError{fmt.Errorf("--output %s is a folder; name a file, such as %s", c.Output, filepath.Join(c.Output, "mcpx.json"))}
	case err == nil && !c.Force:
		return fmt.Errorf("%s exists; --force overwrites it", c.Output)
	}
	made, err := makeFolder(c.Output)
	if err != nil {
		return err
	}
	if made {
		fmt.Fprintf(t.Stderr, "made the folder %s\n", filepath.Dir(c.Output))
	}
	return atomicfile.Replace(c.Output, text, 0o600)
}

// makeFolder creates the folder of a file, for its owner alone. It reports whether there was
// none.
func makeFolder(file string) (made bool, err error) {
	folder := filepath.Dir(file)
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, os.MkdirAll(folder, 0o700)
}
