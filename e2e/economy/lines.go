package main

import (
	"fmt"
	"strings"

	"mcpx/registry/lists"
)

// lineShares counts the tools by what their line in inspect(server) has.
type lineShares struct {
	full, typed, bare int // signature and sentence; required parameters and sentence; less
}

// add counts the line of a tool. It reports whether the line is enough to call the tool:
// whether it has the types of the required parameters.
func (l *lineShares) add(listing string, t *lists.Tool) bool {
	has := func(parameters string) bool {
		_, rest, found := strings.Cut(listing, "\n"+t.Name+"("+parameters+")")
		return found && (t.Description == "" || strings.HasPrefix(rest, ": "))
	}
	switch {
	case has(t.Signature()):
		l.full++
	case has(t.TypedParameters()):
		l.typed++
	default:
		l.bare++
		return false
	}
	return true
}

func (l *lineShares) print() {
	share := func(n int) float64 { return 100 * float64(n) / float64(max(l.full+l.typed+l.bare, 1)) }
	fmt.Printf("tools with a full line in inspect(server): %.1f %%; with typed required parameters: %.1f %%; with less: %.1f %%\n", share(l.full), share(l.typed), share(l.bare))
}
