package config

import (
	"context"
	"errors"

	"mcpx/internal/jsonc"
)

// Hooks are what the values of a config need from outside the file and the environment. With
// the zero value, only stored secrets in files can be read.
type Hooks struct {
	Secrets    Secrets                    // may be nil
	Sections   []Section                  // the keys of parts; without them, these keys are unknown
	Checks     []Check                    // of parts, in the order in which they are made
	CheckStore func(address string) error // returns an error for an address that server.store cannot have; may be nil
}

// Check reports problems of a whole file, once it was read: values that do not fit together. The
// config has no upstream with expanded references yet.
type Check func(c *Config, f *jsonc.File, root jsonc.Node)

// Secrets reads stored secrets that are not in files. Its errors say what to do, and have no
// secrets.
type Secrets interface {
	// Get returns the secret of ${keyring:NAME}.
	Get(ctx context.Context, name string) (string, error)
	// Run runs a command in a folder and returns what it prints, without the last line break.
	Run(ctx context.Context, words []string, folder string) (string, error)
}

// MaxSecret is the size of the largest stored secret in bytes.
const MaxSecret = 64 << 10

// noSecrets are the Secrets without a hook.
type noSecrets struct{}

var errNoSecrets = errors.New("only secrets in files can be read here; use ${file:PATH}")

func (noSecrets) Get(context.Context, string) (string, error) { return "", errNoSecrets }

func (noSecrets) Run(context.Context, []string, string) (string, error) { return "", errNoSecrets }
