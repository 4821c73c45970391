package app

import (
	"mcpx/config"
	"mcpx/internal/parts/audit"
	"mcpx/internal/parts/callers"
	"mcpx/internal/parts/replicas/redis"
	"mcpx/internal/parts/search"
	"mcpx/internal/parts/secrets"
	"mcpx/internal/parts/signin"
)

// ConfigHooks returns what the values of a config need.
func ConfigHooks() config.Hooks {
	return config.Hooks{
		Secrets:    secrets.Stored{},
		CheckStore: redis.CheckAddress,
		Sections:   []config.Section{audit.Section, callers.Section, search.Section},
		Checks:     []config.Check{callers.Check},
	}
}

// LoadConfig reads a config file.
func LoadConfig(path string) (*config.Config, error) { return ConfigHooks().Load(path) }

// guide returns how people sign in to the upstreams of a profile.
func (a *App) guide(c *config.Config, p *config.Profile) signin.Guide {
	return signin.Guide{File: c.File, Profile: p.Name, Address: func() string { return a.address }}
}
