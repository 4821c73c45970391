package app

import (
	"context"
	"io"

	"mcpx/config"
)

// Group is several profiles of a config, ready to run.
type Group struct {
	Apps []*App

	shared *shared
}

// NewGroup puts the parts together for the named profile, or for every one that
// is enabled if the name is empty. Nothing runs yet.
func NewGroup(c *config.Config, profile string, stderr io.Writer) (*Group, error) {
	profiles, err := chosen(c, profile)
	if err != nil {
		return nil, err
	}
	s, err := share(c, stderr)
	if err != nil {
		return nil, err
	}
	g := &Group{shared: s}
	for _, p := range profiles {
		g.Apps = append(g.Apps, s.app(c, p))
	}
	return g, nil
}

// With runs the upstreams of all profiles for as long as use does.
func (g *Group) With(ctx context.Context, use func(ctx context.Context) error) error {
	return g.shared.with(ctx, g.Apps, use)
}
