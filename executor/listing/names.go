package listing

import (
	"fmt"
	"strings"

	"mcpx/internal/nearest"
	"mcpx/internal/plain"
	"mcpx/registry/live"
)

// Limits of the names in an error.
const (
	nameList  = 1500 // bytes in all
	nameBytes = 128  // of one
)

// Name returns a name for an error or a listing: on one line and not too long.
func Name(name string) string { return plain.Cut(plain.Line(name), nameBytes) }

// Quoted returns Name in quotes.
func Quoted(name string) string { return `"` + Name(name) + `"` }

// ToolNames returns the names of the tools of an upstream.
func ToolNames(u *live.Upstream) []string {
	names := make([]string, len(u.Tools))
	for i, t := range u.Tools {
		names[i] = t.Name
	}
	return names
}

// DidYouMean returns a question with the known names that are most like a name, "" if there are
// none.
func DidYouMean(name string, known []string) string {
	if len(name) > nameBytes {
		return ""
	}
	near := nearest.Words(name, known, 3)
	if len(near) == 0 {
		return ""
	}
	for i, n := range near {
		near[i] = Quoted(n)
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// Names returns names on one line, as many as fit.
func Names(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, name := range names {
		if b.Len() > nameList {
			fmt.Fprintf(&b, ", … and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(Name(name))
	}
	return b.String()
}
