// Package policytest has rules for the tests of packages that ask them.
package policytest

import (
	"path"
	"strings"

	"mcpx/internal/policy"
)

// Rules grant profiles, servers and tools: "schema", "schema/server" or "schema/server/tool",
// each part a pattern of path.Match.
type Rules struct {
	Allow    []string
	ReadOnly []string // of their tools, only those that say readOnlyHint: true
}

// Allow returns rules.
func Allow(patterns ...string) *Rules { return &Rules{Allow: patterns} }

// HasProfile implements policy.Rules.
func (r *Rules) HasProfile(profile string) bool {
	return matches(r.Allow, profile) || matches(r.ReadOnly, profile)
}

// Extent implements policy.Rules.
func (r *Rules) Extent(profile, server string) policy.Extent {
	most := policy.Nothing
	for _, list := range []struct {
		patterns []string
		whole    policy.Extent
	}{{r.Allow, policy.Everything}, {r.ReadOnly, policy.AllButSomeTools}} {
		for _, p := range list.patterns {
			switch {
			case !matches([]string{p}, profile, server):
			case strings.Count(p, "/") == 2:
				most = max(most, policy.SomeTools)
			default:
				most = max(most, list.whole)
			}
		}
	}
	return most
}

// HasTool implements policy.Rules.
func (r *Rules) HasTool(t policy.Tool) bool {
	return matches(r.Allow, t.Profile, t.Server, t.Name) || t.ReadOnly && matches(r.ReadOnly, t.Profile, t.Server, t.Name)
}

// matches reports whether one of the patterns matches the names, as far as it goes.
func matches(patterns []string, names ...string) bool {
	for _, p := range patterns {
		parts := strings.Split(p, "/")
		depth := min(len(parts), len(names))
		if ok, err := path.Match(strings.Join(parts[:depth], "/"), strings.Join(names[:depth], "/")); ok && err == nil {
			return true
		}
	}
	return false
}
