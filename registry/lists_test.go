package registry

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/registry/lists"
)

func TestListsAreAnnounced(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t, "-full", "-start-delay", "3s")}) // not ready before the client is there
	c := newRecorder("one")
	r.Attach(c)
	c.wait(t, "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed")
	u := r.Settled(t.Context(), "a")
	for what, keys := range map[string][2][]string{
		"prompts":   {{"plain", "choice", "needs"}, names(u.Prompts)},
		"resources": {{"test://one", "own://test"}, names(u.Resources)},
		"templates": {{"item://{id}", "own://test/{category}/{id}"}, names(u.Templates)},
	} {
		if !slices.Equal(keys[0], keys[1]) {
			t.Errorf("%s are %q, want %q", what, keys[1], keys[0])
		}
	}
	if !u.Has("completions") || u.Has("tasks") {
		t.Errorf("capabilities %s", u.Capabilities)
	}
}

// TestStartsAreAnnouncedTogether: while upstreams start, their changes are announced
// together, however many there are.
func TestStartsAreAnnouncedTogether(t *testing.T) {
	upstreams := map[string]any{"late": mcptest.Upstream(t, "-start-delay", "1s")}
	for i := range 6 {
		upstreams[fmt.Sprint("early", i)] = mcptest.Upstream(t)
	}
	begin := time.Now()
	r, _ := run(t, upstreams)
	c := newRecorder("one")
	r.Attach(c)
	for name := range upstreams {
		if _, err := r.For(nil).Ready(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	c.wait(t, "notifications/tools/list_changed")
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 2 + int(time.Since(begin)/startPause)
	if n := len(c.told); n > most {
		t.Errorf("%d notifications, want at most %d: %q", n, most, c.told)
	}
}

func names(items []lists.Item) (keys []string) {
	for _, i := range items {
		keys = append(keys, i.Key)
	}
	return keys
}

func TestListChangedIsCoalesced(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t)})
	before := r.Settled(t.Context(), "a")
	mustCall(t, r, "a", "change", `{"notices":200}`)
	l.wait(t, "list changed")
	after := r.Settled(t.Context(), "a")
	if before.Tool("extra_0") != nil || after.Tool("extra_0") == nil {
		t.Error("the new tool is not there")
	}
	if before.Tool("echo") != after.Tool("echo") {
		t.Error("a tool that did not change was made anew")
	}
	mustCall(t, r, "a", "sleep", `{"ms":1500}`)
	count, err := strconv.Atoi(mustCall(t, r, "a", "lists", "{}"))
	if err != nil || count > 3 {
		t.Errorf("200 notices caused %d lists besides the first, want 2 at most", count-1)
	}
}
