package callers

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"mcpx/internal/policy"
)

// Grant is a part of what a caller may use, as the config has it.
type Grant struct {
	Allow    []string // profile, profile/server or profile/server/tool, each part a glob
	ReadOnly bool     // of tools, only those that say readOnlyHint: true
}

// rules is what a caller may use: the union of some grants. It is immutable. The nil *rules
// grants everything.
type rules struct {
	rules    []rule
	profiles []string // the only profiles; nil: all that the rules name
}

// rule is one line of a grant. Its parts are globs.
type rule struct {
	profile, server string
	tool            string // empty: the whole server, with its prompts and resources
	readOnly        bool
}

// Union returns the rules of all grants together, nil if they grant everything.
func Union(grants ...Grant) policy.Rules { return union(grants).hook() }

// hook returns the rules for the core, to which nil is everything.
func (r *rules) hook() policy.Rules {
	if r == nil {
		return nil
	}
	return r
}

// union is Union. Globs that checkRule refuses grant nothing.
func union(grants []Grant) *rules {
	all := &rules{}
	for _, g := range grants {
		for _, text := range g.Allow {
			if checkRule(text) != nil {
				continue
			}
			r := parse(text)
			r.readOnly = g.ReadOnly
			if r == (rule{profile: "*", server: "*"}) {
				return nil
			}
			all.rules = append(all.rules, r)
		}
	}
	return all
}

// within returns the part of the rules in some profiles; nil are all profiles.
func (r *rules) within(profiles []string) *rules {
	switch {
	case profiles == nil:
		return r
	case r == nil:
		return &rules{rules: []rule{{profile: "*", server: "*"}}, profiles: profiles}
	}
	return &rules{rules: r.rules, profiles: profiles}
}

// parse splits a rule into its parts.
func parse(text string) rule {
	profile, rest, hasServer := strings.Cut(text, "/")
	if !hasServer {
		return rule{profile: profile, server: "*"}
	}
	server, tool, _ := strings.Cut(rest, "/")
	return rule{profile: profile, server: server, tool: tool}
}

// checkRule returns what is wrong with a line of a grant.
func checkRule(text string) error {
	parts := strings.SplitN(text, "/", 3)
	for i, part := range parts {
		if part == "" {
			return fmt.Errorf(`%q has an empty part; write "schema", "schema/server" or "schema/server/tool"`, text)
		}
		if _, err := path.Match(unslash(parts[i]), ""); errors.Is(err, path.ErrBadPattern) {
			return fmt.Errorf("invalid glob %q; * is any text, ? any character, [ab] one of these", part)
		}
	}
	return nil
}

// HasProfile implements policy.Rules.
func (r *rules) HasProfile(profile string) bool {
	return r.grants(profile, func(rule) bool { return true })
}

// Extent implements policy.Rules.
func (r *rules) Extent(profile, server string) policy.Extent {
	if r == nil {
		return policy.Everything
	}
	most := policy.Nothing
	_ = r.grants(profile, func(g rule) bool {
		if matches(g.server, server) {
			most = max(most, g.extent())
		}
		return most == policy.Everything
	})
	return most
}

// extent returns how much a rule grants of a server.
func (g rule) extent() policy.Extent {
	switch {
	case g.tool != "":
		return policy.SomeTools
	case g.readOnly:
		return policy.AllButSomeTools
	}
	return policy.Everything
}

// HasTool implements policy.Rules.
func (r *rules) HasTool(t policy.Tool) bool {
	return r.grants(t.Profile, func(g rule) bool {
		return matches(g.server, t.Server) && (g.tool == "" || matches(g.tool, t.Name)) && (t.ReadOnly || !g.readOnly)
	})
}

// grants reports whether a rule for the profile passes the test.
func (r *rules) grants(profile string, test func(rule) bool) bool {
	if r == nil {
		return true
	}
	if r.profiles != nil && !slices.Contains(r.profiles, profile) {
		return false
	}
	return slices.ContainsFunc(r.rules, func(g rule) bool { return matches(g.profile, profile) && test(g) })
}

// matches reports whether a glob matches a name.
func matches(glob, name string) bool {
	ok, _ := path.Match(unslash(glob), unslash(name))
	return ok
}

// unslash replaces slashes, which * of path.Match does not match. Tools may have some in
// their names.
func unslash(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
