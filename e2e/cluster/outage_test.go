//go:build unix

package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/parts/replicas/storetest"
)

// TestStoreOutage: the store stops, hangs and comes back under load. Calls go on, new
// handles say that they are on one replica only, /health shows the state, and mcpx uses
// the store again by itself.
func TestStoreOutage(t *testing.T) {
	s := storetest.Start(t)
	c := startCluster(t, options{server: map[string]any{"session_key": newKey(), "store": s.Address()}})
	v := openClient(t, c)
	for _, outage := range []struct {
		name       string
		begin, end func()
	}{
		{"stopped", s.Stop, s.Start},
		{"hanging", s.Pause, s.Resume},
	} {
		l := startCalls(t, c, 50)
		outage.begin()
		l.waitFor(50)
		eventually(t, outage.name+": a new handle is on one replica only", func() (string, bool) {
			handle, note, err := v.keep(c.replica(0).url, "local")
			if err != nil || !strings.Contains(note, onlyHere) {
				return fmt.Sprint(note, err), false
			}
			got, err := v.execAt(c.replica(0).url, "mcpx", "read_result", fmt.Sprintf(`{"id":%q,"path":"/words/1"}`, handle))
			return fmt.Sprint(got, err), strings.Contains(got, "local-1")
		})
		for n := range replicaCount {
			eventually(t, fmt.Sprintf("%s: replica %d reports it", outage.name, n), func() (string, bool) {
				got := c.replica(n).health()
				return got, strings.HasPrefix(got, "200 ") && strings.Contains(got, `"down"`)
			})
		}
		l.waitFor(50)
		outage.end()
		eventually(t, outage.name+": the store is used again", func() (string, bool) {
			handle, note, err := v.keep(c.replica(0).url, "shared")
			if err != nil || strings.Contains(note, onlyHere) {
				return fmt.Sprint(note, err), false
			}
			got, err := v.execAt(c.replica(1).url, "mcpx", "read_result", fmt.Sprintf(`{"id":%q,"path":"/words/1"}`, handle))
			return fmt.Sprint(got, err), strings.Contains(got, "shared-1")
		})
		for n := range replicaCount {
			eventually(t, fmt.Sprintf("%s: replica %d reports that it is back", outage.name, n), func() (string, bool) {
				got := c.replica(n).health()
				return got, strings.HasPrefix(got, "200 ") && !strings.Contains(got, `"down"`)
			})
		}
		l.end()
	}
}

// TestCallsNeedNoStore: calls in a session that a replica knows make no requests to the store,
// if their results are not kept. A few requests are mcpx's own checks of the store.
func TestCallsNeedNoStore(t *testing.T) {
	t.Parallel()
	c := startCluster(t, options{server: shared(t)})
	v, at := openClient(t, c), c.replica(0).url
	const calls, checks = 500, 50
	before := -1
	for range calls {
		if _, err := v.execAt(at, "count", "echo", `{"text":"hello"}`); err != nil {
			t.Fatal(err)
		}
		if before < 0 { // the first call may have continued the session
			before = storeRequests(t, at)
		}
	}
	if got := storeRequests(t, at) - before; got > checks {
		t.Errorf("%d requests to the store for %d calls", got, calls)
	}
}

// storeRequests returns how many requests a replica has made to the store.
func storeRequests(t *testing.T, at string) int {
	t.Helper()
	answer, err := http.Get(at + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if number, ok := strings.CutPrefix(lines.Text(), "mcpx_store_requests_total "); ok {
			n, err := strconv.ParseFloat(number, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(n)
		}
	}
	t.Fatal("no metric of the store")
	return 0
}
