package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"mcpx/cmd/internal/terminal"
	"mcpx/config"
	"mcpx/internal/ansi"
	"mcpx/internal/app"
	"mcpx/internal/parts/lock"
	"mcpx/internal/parts/lock/lockfile"
	"mcpx/internal/plain"
	"mcpx/registry/live"
)

// checkCmd connects to every server and reports its state.
type checkCmd struct {
	configFile
	adHocFlags
	Profile  string `name:"schema" env:"MCPX_SCHEMA" placeholder:"NAME" help:"Only this profile; without it, every enabled profile."`
	JSON     bool   `help:"Print the report as JSON."`
	Locked   bool   `help:"Compare the servers with mcpx.lock, for CI."`
	LogLevel string `enum:"debug,info,warn,error" default:"error" env:"MCPX_LOG_LEVEL" help:"debug, info, warn or error (${default})."`
}

func (checkCmd) Help() string {
	return `mcpx starts each server or connects to it, lists its tools, prompts and resources, and stops it again. No tool is called.

Examples:
  mcpx check                            the default config
  mcpx check mcpx.json --schema work    one profile of it
  mcpx check mcpx.json --json | jq -r '.servers[] | select(.state != "ready") | .name'
  mcpx check --locked

Exit code: 0 if every server is ready, 1 if one is not, or is not as it was approved (--locked), 2 if the command line or the config
is wrong, or there is no mcpx.lock (--locked).`
}

// checkReport is the report of all servers.
type checkReport struct {
	Ready   int             `json:"ready"`
	Failed  int             `json:"failed"`
	Servers []checkedServer `json:"servers"`

	hasProfiles bool // the servers are of several profiles
}

// checkedServer is the report of one server.
type checkedServer struct {
	Profile   string   `json:"schema"`
	Name      string   `json:"name"`
	State     string   `json:"state"`
	Transport string   `json:"transport"`
	Tools     int      `json:"tools"`
	Prompts   int      `json:"prompts"`
	Resources int      `json:"resources"`
	Templates int      `json:"templates"`
	Tokens    int      `json:"tokens"`
	StartupMS int64    `json:"startup_ms"`
	Reason    string   `json:"reason,omitempty"`
	Next      string   `json:"next,omitempty"`
	Stderr    []string `json:"stderr,omitempty"`
}

// ready reports whether the server can be used.
func (s checkedServer) ready() bool { return s.State == string(live.Ready) }

func (c *checkCmd) Run(t *invocation) error {
	file, err := c.load(t, c.Path, c.LogLevel)
	if err != nil {
		return err
	}
	warn(t.Stderr, file.Warnings)
	approved, err := c.lock(t, file)
	if err != nil {
		return err
	}
	return t.connect(file, c.Profile, func(lists []app.ToolLists) error {
		r := newCheckReport(lists)
		if c.JSON {
			_ = t.Encode(r)
		} else {
			r.print(t)
		}
		if err := c.compare(t, file, approved, lists); err != nil {
			return err
		}
		if r.Failed == 0 {
			return nil
		}
		return fmt.Errorf("not ready: %d of %s", r.Failed, plain.Count(len(r.Servers), "server"))
	})
}

// connect starts the servers of a profile, or of all enabled profiles if the name is
// empty. It calls use once every server is ready or has failed.
func (t *invocation) connect(file *config.Config, profile string, use func(lists []app.ToolLists) error) error {
	a, line, err := t.newApp(app.New, file, profile)
	if err != nil {
		return err
	}
	return t.run(a, func(ctx context.Context) error {
		stop := line.Show(func() string { return starting(a, "") })
		lists := a.ToolLists(ctx)
		if stop(); ctx.Err() != nil {
			return ctx.Err()
		}
		return use(lists)
	})
}

// newCheckReport returns the report of all servers.
func newCheckReport(all []app.ToolLists) checkReport {
	r := checkReport{Servers: []checkedServer{}, hasProfiles: len(all) > 1}
	for _, lists := range all {
		for i, u := range lists.Upstreams {
			s := checked(u, &lists.Profile.Upstreams[i])
			s.Profile = lists.Profile.Name
			r.Servers = append(r.Servers, s)
			if s.ready() {
				r.Ready++
			} else {
				r.Failed++
			}
		}
	}
	return r
}

func checked(u *live.Upstream, c *config.Upstream) checkedServer {
	s := checkedServer{
		Name: u.Name, State: finalState(u), Transport: transportOf(c), Tokens: u.Tokens(),
		Tools: len(u.Tools), Prompts: len(u.Prompts), Resources: len(u.Resources), Templates: len(u.Templates),
		StartupMS: u.StartupTime.Milliseconds(), Reason: u.Reason, Stderr: u.Stderr,
	}
	switch {
	case !s.ready():
		s.Next = u.Advice()
	case u.KeepsRoots() && c.Isolation == config.Shared:
		s.Next = `it requests the roots of its client; if several clients share mcpx over HTTP, set "isolation": "client" for it`
	}
	return s
}

// finalState returns the state of a server when the command ends.
func finalState(u *live.Upstream) string {
	if u.State == live.Waiting {
		return string(live.Failed) // nobody will start it again
	}
	return string(u.State)
}

// print prints the report as a table, followed by advice for each server that failed.
func (r checkReport) print(t *invocation) {
	if len(r.Servers) == 0 {
		fmt.Fprintln(t.Stdout, "no servers are enabled")
		return
	}
	list := t.Table("profile", "server", "state", "transport", "tools", "tokens", "start-up", "reason")
	for _, s := range r.Servers {
		list.Add(s.row()...)
	}
	if !r.hasProfiles {
		list.DropFirst()
	}
	list.Print(t.Stdout)
	for i, s := range r.Servers {
		switch {
		case !s.ready() && list.IsCut(i+1): // below the titles
			s.explain(t, " "+s.Reason)
		case !s.ready() && len(s.Stderr)+len(s.Next) > 0:
			s.explain(t, "")
		case s.Next != "":
			fmt.Fprintf(t.Stdout, "\n%s: %s\n", t.Paint().Text(ansi.Cyan, s.Name), s.Next)
		}
	}
}

// row returns the server's row of the table.
func (s checkedServer) row() []terminal.Cell {
	state, figure := terminal.Cell{Text: s.State, Style: ansi.Red}, func(string) terminal.Cell { return terminal.Cell{Text: terminal.None, Right: true} }
	if s.ready() {
		state.Style, figure = ansi.Green, func(text string) terminal.Cell { return terminal.Cell{Text: text, Right: true} }
	}
	return []terminal.Cell{
		{Text: s.Profile}, {Text: s.Name, Style: ansi.Cyan}, state, {Text: s.Transport},
		figure(plain.Number(s.Tools)), figure(plain.Number(s.Tokens)), figure(took(s.StartupMS)), {Text: s.Reason},
	}
}

// explain prints the reason, if the table could not show it, the last lines of the
// server's stderr, and what to do next.
func (s checkedServer) explain(t *invocation, reason string) {
	paint := t.Paint().Text
	fmt.Fprintf(t.Stdout, "\n%s:%s\n", paint(ansi.Red, s.Name), reason)
	if len(s.Stderr) > 0 {
		fmt.Fprintln(t.Stdout, "  last lines of its stderr:")
		for _, line := range s.Stderr {
			fmt.Fprintf(t.Stdout, "    %s\n", paint(ansi.Faint, line))
		}
	}
	if s.Next != "" {
		fmt.Fprintf(t.Stdout, "  %s %s\n", paint(ansi.Bold, "next:"), s.Next)
	}
}

// took formats a time with about three digits.
func took(ms int64) string {
	switch seconds := float64(ms) / 1000; {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.2f s", seconds)
	default:
		return fmt.Sprintf("%.1f s", seconds)
	}
}

// lock reads the lock file. Only check --locked needs one; otherwise there may be none to compare
// with.
func (c *checkCmd) lock(t *invocation, file *config.Config) (lockfile.Lock, error) {
	switch {
	case c.Locked && t.adhoc != nil:
		return nil, usageError{errors.New("--locked needs a config file, not a url or a command")}
	case t.adhoc != nil:
		return nil, nil
	}
	path := lockfile.Path(file.File)
	approved, err := lockfile.Read(path)
	isAbsent := errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil || c.Locked && !isAbsent:
		return approved, err
	case c.Locked:
		return nil, usageError{withHint(fmt.Errorf("there is no %s", path), "%s creates it", lock.PinCommand(file))}
	case !isAbsent:
		fmt.Fprintf(t.Stderr, "warning: mcpx starts no server when it serves: %v\n", err)
	}
	return nil, nil
}

// compare prints the differences from the lock. With --locked, it returns an error if one needs
// a review.
func (c *checkCmd) compare(t *invocation, file *config.Config, approved lockfile.Lock, lists []app.ToolLists) error {
	if approved == nil {
		return nil
	}
	path, review := lockfile.Path(file.File), lock.PinCommand(file, "--diff")
	changes := offersOf(lists).Compare(approved)
	count := 0
	for _, change := range changes {
		if !change.IsNotice() {
			count++
		}
	}
	if !c.Locked {
		if count > 0 {
			fmt.Fprintf(t.Stderr, "warning: %s not approved in %s; review them with %s\n", plain.Count(count, "change"), path, review)
		}
		return nil
	}
	if !c.JSON && len(changes) > 0 {
		fmt.Fprintf(t.Stdout, "\n%s", reviewText(t, changes))
	}
	if count == 0 {
		return nil
	}
	return withHint(fmt.Errorf("%s not approved in %s", plain.Count(count, "change"), path), "review them with %s, approve them with %s, and commit the lock file", review, lock.PinCommand(file))
}
