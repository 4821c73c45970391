package app

import (
	"mcpx/config"
	"mcpx/internal/parts/audit"
	"mcpx/internal/parts/callers"
	"mcpx/internal/parts/lock"
	"mcpx/internal/parts/replicas/redis"
	"mcpx/internal/parts/search"
	"mcpx/internal/parts/secrets"
	"mcpx/internal/parts/signin"
	"mcpx/registry/lists"
)

// ConfigHooks returns what the values of a config need.
func ConfigHooks() config.Hooks {
	return config.Hooks{
		Secrets:    secrets.Stored{},
		CheckStore: redis.CheckAddress,
		Sections:   []config.Section{audit.Section, callers.Section, lock.Section, search.Section},
		Checks:     []config.Check{callers.Check},
	}
}

// LoadConfig reads a config file.
func LoadConfig(path string) (*config.Config, error) { return ConfigHooks().Load(path) }

// guide returns how people sign in to the upstreams of a profile.
func (a *App) guide(c *config.Config, p *config.Profile) signin.Guide {
	return signin.Guide{File: c.File, Profile: p.Name, Address: func() string { return a.address }}
}

// readLock reads the lock file of a config, if it counts. The caller may change the config.
func (a *App) readLock(c *config.Config) {
	if a.isLocked {
		a.approvals = lock.Read(c)
	}
}

// views returns what clients see of an upstream of a profile. A registry calls it only when it
// gets a config.
func (a *App) views(profile string, u *config.Upstream) lists.Views {
	return a.approvals.Views(profile, u)
}
