package config

import (
	"fmt"
	"path"
	"strings"
)

// Filter says which tools of an upstream there are. The zero Filter allows all.
type Filter struct {
	Allow []string // globs; none allows all
	Deny  []string // globs; stronger than Allow
}

// Allows reports whether the tool may be seen and called.
func (f Filter) Allows(tool string) bool {
	return !matchAny(f.Deny, tool) && (len(f.Allow) == 0 || matchAny(f.Allow, tool))
}

func matchAny(globs []string, tool string) bool {
	for _, g := range globs {
		if ok, _ := path.Match(unslash(g), unslash(tool)); ok {
			return true
		}
	}
	return false
}

// unslash takes away the one character that path.Match's * stops at: tool
// names are no paths.
func unslash(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

// glob checks a pattern as it is read, so that Allows need not.
func glob(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
		return fmt.Errorf("invalid glob %q; * is any text, ? any character, [ab] one of these", pattern)
	}
	return nil
}
