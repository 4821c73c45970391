package cli

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"mcpx/internal/auth"
	"mcpx/internal/plain"
)

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

func (c *loginCmd) Run(t *terminal) error {
	s, err := c.find(t)
	if err != nil {
		return err
	}
	defer s.close()
	if err := c.signIn(t, s); err != nil {
		if t.ctx.Err() != nil {
			return errInterrupted
		}
		return s.explain(err)
	}
	status, err := s.Status(t.ctx)
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
	return t.printf("%s\n", plain.Line(text))
}

// signIn chooses the way to sign in.
func (c *loginCmd) signIn(t *terminal, s *signing) error {
	flow := s.Settings().Flow
	isAuto := flow != auth.FlowBrowser && flow != auth.FlowDevice
	switch {
	case flow == auth.FlowClientCredentials:
		return s.SignIn(t.ctx, c.Scope)
	case c.Paste:
		return c.paste(t, s)
	case c.Device, flow == auth.FlowDevice && !c.NoBrowser:
		return c.device(t, s)
	case c.NoBrowser || !isAuto || hasDisplay():
		return c.browse(t, s)
	}
	if err := c.device(t, s); !errors.Is(err, auth.ErrNoDevice) {
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
func (c *loginCmd) device(t *terminal, s *signing) error {
	d, err := s.Device(t.ctx, c.Scope)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.stderr, "open %s and enter the code %s\n", d.Address, d.UserCode)
	if d.Complete != "" {
		fmt.Fprintf(t.stderr, "or open %s\n", d.Complete)
	}
	return d.Wait(t.ctx)
}

// paste signs in with the address that the browser ends at, which the person pastes.
func (c *loginCmd) paste(t *terminal, s *signing) error {
	address, err := s.Begin(t.ctx, s.PasteRedirect(), c.Scope)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.stderr, "open this address:\n  %s\nsign in, then paste the address that the browser ends at (the page itself does not load):\n", plain.Line(address))
	line, err := t.readLine()
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
	_, err = s.accounts.Complete(t.ctx, "", back.Query())
	return err
}

// browse signs in with the browser, which is sent back to a port of this machine.
func (c *loginCmd) browse(t *terminal, s *signing) error {
	signIn, err := s.BeginLoopback(t.ctx, s.server.Name, c.Scope)
	if err != nil {
		return err
	}
	request := "sign in with the browser; if it does not open, use this address:"
	if c.NoBrowser {
		request = "open this address in a browser on this machine, and sign in:"
	}
	fmt.Fprintf(t.stderr, "%s\n  %s\n", request, plain.Line(signIn.Address))
	if !c.NoBrowser {
		if err := openBrowser(signIn.Address); err != nil {
			fmt.Fprintf(t.stderr, "warning: the browser cannot be opened: %v\n", err)
		}
	}
	return signIn.Wait(t.ctx)
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
