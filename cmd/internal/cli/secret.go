package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"mcpx/config"
	"mcpx/internal/parts/secrets"
	"mcpx/internal/plain"
	"mcpx/internal/reference"
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

func (c *secretSetCmd) Run(t *invocation) error {
	if err := reference.CheckName(c.Name); err != nil {
		return usageError{err}
	}
	if err := secrets.Available(); err != nil { // before anything is typed
		return err
	}
	value, err := t.readSecret(c.Name)
	switch {
	case err != nil:
		return err
	case value == "":
		return usageError{errors.New("the secret is empty; nothing was stored")}
	case len(value) > config.MaxSecret:
		return usageError{withHint(fmt.Errorf("the secret has more than %d KiB", config.MaxSecret>>10), "keep it in a file: ${file:PATH}")}
	}
	if err := secrets.Set(t.Ctx, c.Name, value); err != nil {
		return err
	}
	if err := secrets.NamesFile(t.repaired).Add(c.Name); err != nil {
		return fmt.Errorf("the secret is stored, but mcpx secret list will not show it: %w", err)
	}
	return t.Printf("stored %s; use it as ${keyring:%[1]s}\n", c.Name)
}

// readSecret asks for a secret on a terminal without echo, or reads stdin.
func (t *invocation) readSecret(name string) (string, error) {
	if f := t.Keyboard(); f != nil {
		return t.AskHidden(f, fmt.Sprintf("secret %s (not shown): ", name))
	}
	bounded := *t
	bounded.Stdin = io.LimitReader(t.Stdin, config.MaxSecret+int64(len("\r\n"))+1)
	data, err := bounded.Read()
	return plain.WithoutLineBreak(string(data)), err
}

type secretListCmd struct {
	JSON bool `help:"Print the names as a JSON array."`
}

func (c *secretListCmd) Run(t *invocation) error {
	names, err := secrets.NamesFile(t.repaired).List()
	if err != nil {
		return err
	}
	if c.JSON {
		return t.Encode(append([]string{}, names...))
	}
	if len(names) == 0 {
		if err := secrets.Available(); err != nil {
			fmt.Fprintln(t.Stderr, "no secrets:", err)
			return nil
		}
		fmt.Fprintln(t.Stderr, "no secrets; mcpx secret set NAME stores one")
		return nil
	}
	return t.Printf("%s\n", strings.Join(names, "\n"))
}

type secretDeleteCmd struct {
	Name string `arg:"" help:"Name of the secret."`
}

func (c *secretDeleteCmd) Run(t *invocation) error {
	if err := reference.CheckName(c.Name); err != nil {
		return usageError{err}
	}
	err := secrets.Delete(t.Ctx, c.Name)
	if err != nil && !errors.Is(err, secrets.ErrNotFound) {
		return err
	}
	if removed := secrets.NamesFile(t.repaired).Remove(c.Name); removed != nil {
		return removed
	}
	if err != nil {
		return withHint(fmt.Errorf("%s is not in the keyring", c.Name), "mcpx secret list")
	}
	return t.Printf("deleted %s\n", c.Name)
}
