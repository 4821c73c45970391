package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"mcpx/internal/secret"
)

// secretCmd groups the commands about secrets in the keyring.
type secretCmd struct {
	Set    secretSetCmd    `cmd:"" help:"Store a secret, which is asked for or read from stdin."`
	List   secretListCmd   `cmd:"" help:"List the names of the secrets that mcpx stored."`
	Delete secretDeleteCmd `cmd:"" help:"Delete a secret."`
}

func (secretCmd) Help() string {
	return `Secrets are in the keyring of the operating system. The config refers to them: "env": {"TOKEN": "${keyring:github}"}.

Examples:
  mcpx secret set github                 asks for the secret, without showing it
  pass show github | mcpx secret set github
  mcpx secret list
  mcpx secret delete github`
}

type secretSetCmd struct {
	Name string `arg:"" help:"Name of the secret, as in $${keyring:NAME}."`
}

func (c *secretSetCmd) Run(t *terminal) error {
	if err := secret.CheckName(c.Name); err != nil {
		return usageError{err}
	}
	if err := secret.Available(); err != nil { // before anything is typed
		return err
	}
	value, err := t.readSecret(c.Name)
	switch {
	case err != nil:
		return err
	case value == "":
		return usageError{errors.New("the secret is empty; nothing was stored")}
	case len(value) > secret.MaxBytes:
		return usageError{withHint(fmt.Errorf("the secret has more than %d KiB", secret.MaxBytes>>10), "keep it in a file: ${file:PATH}")}
	}
	if err := secret.Set(t.ctx, c.Name, value); err != nil {
		return err
	}
	if err := secret.NamesFile(t.repaired).Add(c.Name); err != nil {
		return fmt.Errorf("the secret is stored, but mcpx secret list will not show it: %w", err)
	}
	return t.printf("stored %s; use it as ${keyring:%[1]s}\n", c.Name)
}

// readSecret asks for a secret on a terminal without echo, or reads stdin.
func (t *terminal) readSecret(name string) (string, error) {
	if f := t.keyboard(); f != nil {
		return t.askSecret(f, name)
	}
	bounded := *t
	bounded.stdin = io.LimitReader(t.stdin, secret.MaxBytes+int64(len("\r\n"))+1)
	data, err := bounded.read()
	return secret.WithoutLineBreak(string(data)), err
}

// askSecret reads a line from a terminal. The terminal shows nothing from before the
// question until the end.
func (t *terminal) askSecret(f *os.File, name string) (string, error) {
	state, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return "", err
	}
	defer func() {
		_ = term.Restore(int(f.Fd()), state)
		fmt.Fprintln(t.stderr)
	}()
	keys := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{f, t.stderr}, "")
	line, err := await(t.ctx, func() (string, error) {
		return keys.ReadPassword(fmt.Sprintf("secret %s (not shown): ", name))
	})
	if errors.Is(err, io.EOF) { // Ctrl-C and Ctrl-D
		return "", errInterrupted
	}
	return line, err
}

type secretListCmd struct {
	JSON bool `help:"Print the names as a JSON array."`
}

func (c *secretListCmd) Run(t *terminal) error {
	names, err := secret.NamesFile(t.repaired).List()
	if err != nil {
		return err
	}
	if c.JSON {
		return t.encode(append([]string{}, names...))
	}
	if len(names) == 0 {
		if err := secret.Available(); err != nil {
			fmt.Fprintln(t.stderr, "no secrets:", err)
			return nil
		}
		fmt.Fprintln(t.stderr, "no secrets; mcpx secret set NAME stores one")
		return nil
	}
	return t.printf("%s\n", strings.Join(names, "\n"))
}

type secretDeleteCmd struct {
	Name string `arg:"" help:"Name of the secret."`
}

func (c *secretDeleteCmd) Run(t *terminal) error {
	if err := secret.CheckName(c.Name); err != nil {
		return usageError{err}
	}
	err := secret.Delete(t.ctx, c.Name)
	if err != nil && !errors.Is(err, secret.ErrNotFound) {
		return err
	}
	if removed := secret.NamesFile(t.repaired).Remove(c.Name); removed != nil {
		return removed
	}
	if err != nil {
		return withHint(fmt.Errorf("%s is not in the keyring", c.Name), "mcpx secret list")
	}
	return t.printf("deleted %s\n", c.Name)
}
