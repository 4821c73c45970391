package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"mcpx/config"
	"mcpx/internal/app"
	"mcpx/internal/parts/lock"
	"mcpx/internal/parts/lock/lockfile"
	"mcpx/internal/plain"
)

// pinCmd approves what the servers send now, and writes it to the lock file.
type pinCmd struct {
	configFile
	Server   []string `arg:"" optional:"" name:"server" help:"Names of servers. Without any, all servers of the config."`
	Diff     bool     `help:"Only show what has changed."`
	Profile  string   `name:"schema" env:"MCPX_SCHEMA" placeholder:"NAME" help:"Only this profile; without it, every enabled profile."`
	LogLevel string   `enum:"debug,info,warn,error" default:"error" env:"MCPX_LOG_LEVEL" help:"debug, info, warn or error (${default})."`
}

func (pinCmd) Help() string {
	return `mcpx starts the servers, lists their tools, prompts and resource templates, and writes them to mcpx.lock beside the config, with the
instructions and the command or URL of each server. From then on, mcpx hides what is not as it is in the lock.

Examples:
  mcpx pin                     approve all servers; the first time, this creates mcpx.lock
  mcpx pin github --diff       show what has changed
  mcpx pin github              show it, ask on a terminal, and approve it
  mcpx check --locked          for CI: exit code 1 if anything is not approved`
}

func (c *pinCmd) Run(t *invocation) error {
	file, err := t.load(c.Path)
	if err != nil {
		return err
	}
	file.ForOneCommand(c.LogLevel)
	old, err := lockfile.Read(lockfile.Path(file.File))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return withHint(err, "restore the file, or delete it and run mcpx pin again")
	}
	if err := c.selectServers(file); err != nil {
		return err
	}
	return t.connect(file, c.Profile, func(lists []app.ToolLists) error {
		offers := offersOf(lists)
		if err := c.review(t, file, old, offers); err != nil {
			return err
		}
		return linesError(offers.Failed())
	})
}

// selectServers removes the servers that are not named, and those that are never compared.
func (c *pinCmd) selectServers(file *config.Config) error {
	var known []string
	for i := range file.Profiles {
		p := &file.Profiles[i]
		if c.Profile != "" && c.Profile != p.Name {
			continue
		}
		p.Upstreams = slices.DeleteFunc(p.Upstreams, func(u config.Upstream) bool {
			known = append(known, u.Name)
			return lock.IsOff(&u) || len(c.Server) > 0 && !slices.Contains(c.Server, u.Name)
		})
	}
	for _, name := range c.Server {
		if !slices.Contains(known, name) {
			return unknownName("server", name, known)
		}
	}
	return nil
}

// review shows the changes and writes the lock file if they are accepted.
func (c *pinCmd) review(t *invocation, file *config.Config, old lockfile.Lock, offers lock.Offers) error {
	path := lockfile.Path(file.File)
	changes := offers.Compare(old)
	if err := c.show(t, old, changes); err != nil || c.Diff {
		return err
	}
	next := offers.Merge(file, old)
	if old != nil && len(changes) == 0 && len(next) == len(old) {
		return t.Printf("%s is up to date\n", path)
	}
	switch ok, err := t.Accepts(fmt.Sprintf("write %s?", path)); {
	case err != nil:
		return err
	case !ok:
		return t.Printf("%s was not changed\n", path)
	}
	if err := next.Write(path); err != nil {
		return writeError(err)
	}
	items := 0
	for _, s := range next {
		items += len(s.Items[lockfile.Tools])
	}
	return t.Printf("%s: %s, %s. A running mcpx applies it when it reloads its config.\n", path, plain.Count(len(next), "server"), plain.Count(items, "tool"))
}

// show prints the changes. The first lock is everything, so that only --diff shows it.
func (c *pinCmd) show(t *invocation, old lockfile.Lock, changes []lockfile.Change) error {
	if old == nil && !c.Diff {
		return nil
	}
	if len(changes) == 0 && c.Diff {
		return t.Printf("nothing has changed\n")
	}
	return t.Printf("%s", reviewText(t, changes))
}

// reviewText returns changes for a person.
func reviewText(t *invocation, changes []lockfile.Change) string {
	var b strings.Builder
	for _, change := range changes {
		b.WriteString(change.Review(t.Paint()) + "\n")
	}
	return b.String()
}

// offersOf returns what the servers send now.
func offersOf(all []app.ToolLists) (offers lock.Offers) {
	for _, lists := range all {
		offers.Add(lists.Profile.Name, lists.Upstreams)
	}
	return offers
}
