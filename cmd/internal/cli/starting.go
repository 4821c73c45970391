package cli

import (
	"fmt"
	"strings"

	"mcpx/executor"
	"mcpx/registry"
)

// shownStarting is how many of the servers that start are named.
const shownStarting = 3

// starting says which servers start: the one of that name, or all if it is empty
// or that of the built-in one. It is empty once none does.
func starting(upstreams []*registry.Upstream, name string) string {
	var names []string
	for _, u := range upstreams {
		wanted := name == "" || name == executor.Builtin || name == u.Name
		if wanted && u.State == registry.Starting {
			names = append(names, u.Name)
		}
	}
	text := strings.Join(names[:min(len(names), shownStarting)], ", ")
	switch {
	case len(names) == 0:
		return ""
	case len(names) > shownStarting:
		text = fmt.Sprintf("%s and %d more", text, len(names)-shownStarting)
	}
	return "starting " + text + "…"
}
