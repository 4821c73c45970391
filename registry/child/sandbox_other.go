//go:build !linux

package child

import (
	"os/exec"

	"mcpx/config"
)

// sandbox has no restrictions: the config refuses an upstream that needs them.
type sandbox struct{ warning string }

func newSandbox(c *config.Upstream, _ *exec.Cmd) (*sandbox, error) {
	if c.Sandbox == nil {
		return &sandbox{}, nil
	}
	return &sandbox{warning: config.NoSandbox}, nil
}

func (*sandbox) started() error { return nil }
func (*sandbox) remove()        {}

// SandboxIfAsked returns at once.
func SandboxIfAsked() {}
