package lock

import (
	"maps"
	"slices"
	"testing"

	"mcpx/internal/parts/lock/lockfile"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// TestOffers: a new lock has the servers that started, keeps the others of the config, and drops
// the rest.
func TestOffers(t *testing.T) {
	c := parse(t, t.TempDir(), `{"mcpServers": {
		"ready": {"command": "x", "tools": {"deny": ["hidden"]}}, "down": {"command": "y"}, "off": {"command": "z", "pin": "off"}
	}}`)
	var servers []*live.Upstream
	for i := range c.Profiles[0].Upstreams {
		u := serverWith(&c.Profiles[0].Upstreams[i], nil)
		u.Name, u.State, u.Reason = u.Config.Name, live.Failed, "it ended"
		servers = append(servers, u)
	}
	ready := servers[0]
	ready.State = live.Ready
	ready.SetLists(list(lists.OfTools, named("one", "hidden")))
	var offers Offers
	offers.Add("default", servers)

	old := lockfile.Lock{"down": {}, "removed": {}}
	changes := offers.Compare(old)
	if len(changes) != 2 || changes[0].Title() != "new command or url" || changes[1].Title() != `new tool "one"` {
		t.Errorf("the changes are %+v", changes)
	}
	next := offers.Merge(c, old)
	if got := slices.Sorted(maps.Keys(next)); !slices.Equal(got, []string{"down", "ready"}) {
		t.Errorf("the new lock has %q", got)
	}
	if got := offers.Failed(); !slices.Equal(got, []string{"down did not start, and its lines stay as they are: it ended"}) {
		t.Errorf("failed are %q", got)
	}
}
