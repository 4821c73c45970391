package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"mcpx/cmd/internal/terminal"
	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/internal/ansi"
	"mcpx/internal/app"
	"mcpx/internal/parts/signin"
	"mcpx/internal/plain"
)

// authCmd groups the commands about signing in to servers.
type authCmd struct {
	Login  loginCmd      `cmd:"" help:"Sign in to a server that uses OAuth."`
	Logout logoutCmd     `cmd:"" help:"Sign out of a server."`
	Status authStatusCmd `cmd:"" help:"Show where you are signed in."`
}

// authTarget is embedded by the commands about the sign-in of one server.
type authTarget struct {
	configFile
	Server  string `arg:"" help:"Name of the server. Leave it out if you give the server's URL."`
	Profile string `name:"schema" default:"default" env:"MCPX_SCHEMA" help:"The profile of the config to use (${default})."`
}

// signing is the sign-in that a command is about.
type signing struct {
	*signin.Account
	accounts *signin.Accounts
	server   *config.Upstream
	close    func() // ends connections
}

// find returns the account of the server.
func (c *authTarget) find(t *invocation) (*signing, error) {
	file, err := t.load(c.Path)
	if err != nil {
		return nil, err
	}
	p, err := file.Profile(c.Profile)
	if err != nil {
		return nil, usageError{err}
	}
	i := slices.IndexFunc(p.Upstreams, func(u config.Upstream) bool { return u.Name == c.Server })
	if i < 0 {
		missing := &edit.UnknownServerError{Profile: p.Name, Name: c.Server}
		for _, u := range p.Upstreams {
			missing.Known = append(missing.Known, u.Name)
		}
		return nil, unknownServer(missing, file.File)
	}
	u := &p.Upstreams[i]
	if u.Err != nil {
		return nil, fmt.Errorf("%s: %w", u.Name, u.Err)
	}
	if u, err = u.Resolve(t.Ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Upstreams[i].Name, err)
	}
	accounts, closeStore, err := app.Accounts(file, t.repaired)
	if err != nil {
		return nil, err
	}
	account := accounts.For(u)
	if account == nil {
		return nil, noSignIn(u)
	}
	return &signing{account, accounts, u, closeStore}, nil
}

// repaired warns that other users could read a file or folder.
func (t *invocation) repaired(path string) { warnRepaired(t.Stderr, path) }

func warnRepaired(stderr io.Writer, path string) {
	fmt.Fprintf(stderr, "warning: other users could read %s; mcpx has repaired its permissions. If it has tokens, sign in again to replace them\n", path)
}

// noSignIn explains why a server has no sign-in.
func noSignIn(u *config.Upstream) error {
	switch {
	case u.URL == "":
		return withHint(fmt.Errorf("%s has no sign-in: mcpx starts it on this machine", u.Name), `give it what it needs in "env"`)
	case u.Auth.Flow == config.FlowNone:
		return withHint(fmt.Errorf(`%s has no sign-in: its auth.flow is "none"`, u.Name), "remove that from the config")
	}
	return withHint(fmt.Errorf("%s has no sign-in: the config sets its Authorization header", u.Name), "remove that header to sign in with OAuth")
}

// explain adds the server's name to an error, and hides secrets.
func (s *signing) explain(err error) error {
	if errors.Is(err, signin.ErrNoOAuth) {
		return withHint(fmt.Errorf("%s does not use OAuth", s.server.Name), `mcpx check shows whether it works; a server with API keys needs "headers"`)
	}
	return fmt.Errorf("%s: %s", s.server.Name, s.Redact(s.server.Redact(err.Error())))
}

type logoutCmd struct{ authTarget }

func (logoutCmd) Help() string {
	return `Removes the tokens of the server from this machine, and asks the service to revoke them.

Examples:
  mcpx auth logout github
  mcpx auth logout mcpx.json github`
}

func (c *logoutCmd) Run(t *invocation) error {
	s, err := c.find(t)
	if err != nil {
		return err
	}
	defer s.close()
	wasSignedIn, err := s.Logout(t.Ctx)
	if err != nil {
		return s.explain(err)
	}
	if !wasSignedIn {
		return t.Printf("not signed in to %s\n", s.server.Name)
	}
	return t.Printf("signed out of %s\n", s.server.Name)
}

type authStatusCmd struct {
	configFile
	Profile string `name:"schema" default:"default" env:"MCPX_SCHEMA" help:"The profile of the config to use (${default})."`
	JSON    bool   `help:"Print the list as JSON."`
}

func (authStatusCmd) Help() string {
	return `Lists the remote servers of the config. Nothing is contacted.

Examples:
  mcpx auth status
  mcpx auth status mcpx.json --json | jq -r '.[] | select(.state != "signed in") | .server'`
}

// authStatus is an element of auth status --json.
type authStatus struct {
	Server  string    `json:"server"`
	State   string    `json:"state"`
	Account string    `json:"account,omitempty"`
	Issuer  string    `json:"issuer,omitempty"`
	Scopes  []string  `json:"scopes,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	Renews  bool      `json:"renews,omitempty"`
	Place   string    `json:"store,omitempty"`
}

// The states of auth status. A server without tokens may not need any.
const (
	stateSignedIn    = "signed in"
	stateNotSignedIn = "not signed in"
	stateNoSignIn    = "no sign-in" // it has a header of its own, or auth.flow is none
	stateError       = "unknown"
)

func (c *authStatusCmd) Run(t *invocation) error {
	file, err := t.load(c.Path)
	if err != nil {
		return err
	}
	p, err := file.Profile(c.Profile)
	if err != nil {
		return usageError{err}
	}
	accounts, closeStore, err := app.Accounts(file, t.repaired)
	if err != nil {
		return err
	}
	defer closeStore()
	all := []authStatus{}
	for i := range p.Upstreams {
		if u := &p.Upstreams[i]; u.URL != "" {
			all = append(all, statusOf(t.Ctx, accounts, u))
		}
	}
	if c.JSON {
		return t.Encode(all)
	}
	if len(all) == 0 {
		return t.Printf("no remote servers\n")
	}
	list := t.Table("server", "state", "account", "expires", "scopes", "issuer", "store")
	for _, s := range all {
		list.Add(s.row(time.Now())...)
	}
	list.Print(t.Stdout)
	return nil
}

// statusOf returns what is known about the sign-in of a server.
func statusOf(ctx context.Context, accounts *signin.Accounts, u *config.Upstream) authStatus {
	s := authStatus{Server: u.Name, State: stateNotSignedIn}
	account := accounts.For(u)
	if account == nil {
		s.State = stateNoSignIn
		return s
	}
	got, err := account.Status(ctx)
	if err != nil {
		s.State = stateError + ": " + plain.Line(err.Error())
		return s
	}
	if got.SignedIn {
		s.State = stateSignedIn
	}
	s.Account, s.Issuer, s.Scopes, s.Expires = got.Account, got.Issuer, got.Scopes, got.Expires
	s.Renews, s.Place = got.Renews, got.Place
	return s
}

func (s authStatus) row(now time.Time) []terminal.Cell {
	state := terminal.Cell{Text: s.State}
	if s.State == stateSignedIn {
		state.Style = ansi.Green
	}
	expires := ""
	switch {
	case s.Expires.IsZero():
	case s.Renews:
		expires = "renews itself"
	case now.After(s.Expires):
		expires = "expired"
	default:
		expires = "in " + s.Expires.Sub(now).Round(time.Minute).String()
	}
	return []terminal.Cell{{Text: s.Server, Style: ansi.Cyan}, state, {Text: cmp.Or(s.Account, terminal.None)}, {Text: cmp.Or(expires, terminal.None)},
		{Text: cmp.Or(strings.Join(s.Scopes, " "), terminal.None)}, {Text: cmp.Or(s.Issuer, terminal.None)}, {Text: cmp.Or(s.Place, terminal.None)}}
}

// loginCmd signs in to a server.
type loginCmd struct {
	authTarget
	Device    bool     `xor:"how" help:"Enter a code in a browser on any device."`
	NoBrowser bool     `xor:"how" help:"Print the address instead of opening a browser."`
	Paste     bool     `xor:"how" help:"Print the address, and ask for the one that the browser ends at. For a browser on another machine."`
	Scope     []string `sep:"none" placeholder:"SCOPE" help:"Ask for this access, too. May be given several times."`
}

func (loginCmd) Help() string {
	return `Opens the browser ($BROWSER, or the default one) and waits until you have signed in. On a machine without a display, you
enter a code on another device, or paste the address that the browser ends at. mcpx keeps the tokens and renews them.

Examples:
  mcpx auth login github                          sign in to a server of the default config
  mcpx auth login mcpx.json github --scope repo   ask for more access
  mcpx auth login https://mcp.example.com/mcp     a server that is not in the config`
}

func (c *loginCmd) Run(t *invocation) error {
	s, err := c.find(t)
	if err != nil {
		return err
	}
	defer s.close()
	if err := c.signIn(t, s); err != nil {
		if t.Ctx.Err() != nil {
			return terminal.ErrInterrupted
		}
		return s.explain(err)
	}
	status, err := s.Status(t.Ctx)
	if err != nil {
		return s.explain(err)
	}
	text := "signed in to " + s.server.Name
	if status.Account != "" {
		text += " as " + status.Account
	}
	if len(status.Scopes) > 0 {
		text += " (" + strings.Join(status.Scopes, " ") + ")"
	}
	return t.Printf("%s\n", plain.Line(text))
}

// signIn chooses the way to sign in.
func (c *loginCmd) signIn(t *invocation, s *signing) error {
	flow := s.Settings().Flow
	isAuto := flow != config.FlowBrowser && flow != config.FlowDevice
	switch {
	case flow == config.FlowClientCredentials:
		return s.SignIn(t.Ctx, c.Scope)
	case c.Paste:
		return c.paste(t, s)
	case c.Device, flow == config.FlowDevice && !c.NoBrowser:
		return c.device(t, s)
	case c.NoBrowser || !isAuto || hasDisplay():
		return c.browse(t, s)
	}
	if err := c.device(t, s); !errors.Is(err, signin.ErrNoDevice) {
		return err
	}
	return c.paste(t, s)
}

// hasDisplay reports whether a browser can be opened for a person.
func hasDisplay() bool {
	switch {
	case os.Getenv("BROWSER") != "":
		return true
	case os.Getenv("SSH_CONNECTION") != "":
		return false
	case runtime.GOOS == "windows" || runtime.GOOS == "darwin":
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}

// device signs in with a code that the person enters elsewhere.
func (c *loginCmd) device(t *invocation, s *signing) error {
	d, err := s.Device(t.Ctx, c.Scope)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Stderr, "open %s and enter the code %s\n", d.Address, d.UserCode)
	if d.Complete != "" {
		fmt.Fprintf(t.Stderr, "or open %s\n", d.Complete)
	}
	return d.Wait(t.Ctx)
}

// paste signs in with the address that the browser ends at, which the person pastes.
func (c *loginCmd) paste(t *invocation, s *signing) error {
	address, err := s.Begin(t.Ctx, s.PasteRedirect(), c.Scope)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Stderr, "open this address:\n  %s\nsign in, then paste the address that the browser ends at (the page itself does not load):\n", plain.Line(address))
	line, err := t.ReadLine()
	switch {
	case line == "" && errors.Is(err, io.EOF):
		return errors.New("nobody pasted an address: stdin has ended")
	case line == "" && err != nil:
		return err
	}
	back, err := url.Parse(strings.TrimSpace(line))
	if err != nil || back.RawQuery == "" {
		return errors.New("this is not an address with a code; paste all of it, from http to the end")
	}
	_, err = s.accounts.Complete(t.Ctx, "", back.Query())
	return err
}

// browse signs in with the browser, which is sent back to a port of this machine.
func (c *loginCmd) browse(t *invocation, s *signing) error {
	signIn, err := s.BeginLoopback(t.Ctx, s.server.Name, c.Scope)
	if err != nil {
		return err
	}
	request := "sign in with the browser; if it does not open, use this address:"
	if c.NoBrowser {
		request = "open this address in a browser on this machine, and sign in:"
	}
	fmt.Fprintf(t.Stderr, "%s\n  %s\n", request, plain.Line(signIn.Address))
	if !c.NoBrowser {
		if err := openBrowser(signIn.Address); err != nil {
			fmt.Fprintf(t.Stderr, "warning: the browser cannot be opened: %v\n", err)
		}
	}
	return signIn.Wait(t.Ctx)
}

// openBrowser opens an address in the browser of the person. There is no shell, and the
// address is one argument.
func openBrowser(address string) error {
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("the address is not one of the web")
	}
	words := strings.Fields(os.Getenv("BROWSER"))
	if len(words) == 0 {
		words = map[string][]string{"windows": {"rundll32", "url.dll,FileProtocolHandler"}, "darwin": {"open"}}[runtime.GOOS]
	}
	if len(words) == 0 {
		words = []string{"xdg-open"}
	}
	browser := exec.Command(words[0], append(words[1:], address)...) //nolint:gosec // the person's own browser
	if err := browser.Start(); err != nil {
		return err
	}
	go func() { _ = browser.Wait() }() // a browser may run for hours
	return nil
}
