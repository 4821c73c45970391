// Package policy says who makes a request, and what that caller may use.
//
// A [Rules] grants profiles, servers and tools. What it does not grant does not exist for
// the caller. A nil *Rules grants everything, and so does a nil *Caller.
package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Caller is who makes requests, on whatever connection. It is immutable.
type Caller struct {
	ID    string // the name of a token, or issuer, NUL and subject; the same for every token of a person
	Name  string // ID for people: in the log and the audit
	Rules *Rules // what it may use; nil: everything

	Headers map[string]string // of its request, by canonical name: those that upstreams get; nil: none
}

// Grant is a part of what a caller may use, as the config has it.
type Grant struct {
	Allow    []string // profile, profile/server or profile/server/tool, each part a glob
	ReadOnly bool     // of tools, only those that say readOnlyHint: true
}

// Rules is what a caller may use: the union of some grants. It is immutable. The nil
// *Rules grants everything.
type Rules struct {
	rules  []rule
	within []string // the only profiles; nil: all that the rules name
}

// rule is one line of a grant. Its parts are globs.
type rule struct {
	profile, server string
	tool            string // empty: the whole server, with its prompts and resources
	readOnly        bool
}

// Union returns the rules of all grants together, nil if they grant everything. Globs
// that CheckRule refuses grant nothing.
func Union(grants ...Grant) *Rules {
	all := &Rules{}
	for _, g := range grants {
		for _, text := range g.Allow {
			if CheckRule(text) != nil {
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

// Within returns the part of the rules in some profiles; nil are all profiles.
func (r *Rules) Within(profiles []string) *Rules {
	switch {
	case profiles == nil:
		return r
	case r == nil:
		return &Rules{rules: []rule{{profile: "*", server: "*"}}, within: profiles}
	}
	return &Rules{rules: r.rules, within: profiles}
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

// CheckRule returns what is wrong with a line of a grant.
func CheckRule(text string) error {
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

// HasProfile reports whether anything in a profile is granted.
func (r *Rules) HasProfile(profile string) bool {
	return r.grants(profile, func(rule) bool { return true })
}

// HasServer reports whether anything of a server is granted. It depends on names alone,
// so that the directory is the same whatever an upstream lists.
func (r *Rules) HasServer(profile, server string) bool {
	return r.grants(profile, func(g rule) bool { return matches(g.server, server) })
}

// HasAllOf reports whether a server is granted with its prompts and resources, and not
// only some of its tools.
func (r *Rules) HasAllOf(profile, server string) bool {
	return r.grants(profile, func(g rule) bool { return matches(g.server, server) && g.tool == "" })
}

// HasEveryToolOf reports whether a server is granted with everything, also tools that
// change something.
func (r *Rules) HasEveryToolOf(profile, server string) bool {
	return r.grants(profile, func(g rule) bool { return matches(g.server, server) && g.tool == "" && !g.readOnly })
}

// Tool is a tool to decide about.
type Tool struct {
	Profile, Server, Name string
	ReadOnly              bool // it says readOnlyHint: true
}

// HasTool reports whether a tool is granted.
func (r *Rules) HasTool(t Tool) bool {
	return r.grants(t.Profile, func(g rule) bool {
		return matches(g.server, t.Server) && (g.tool == "" || matches(g.tool, t.Name)) && (t.ReadOnly || !g.readOnly)
	})
}

// grants reports whether a rule for the profile passes the test.
func (r *Rules) grants(profile string, test func(rule) bool) bool {
	if r == nil {
		return true
	}
	if r.within != nil && !slices.Contains(r.within, profile) {
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
