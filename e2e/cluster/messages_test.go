//go:build unix

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// asks are the requests that an upstream may send to a client, with a response.
var asks = []struct{ method, response string }{
	{"sampling/createMessage", `{"role":"assistant","content":{"type":"text","text":"hello"},"model":"m"}`},
	{"elicitation/create", `{"action":"accept","content":{"a":"b"}}`},
	{"roots/list", `{"roots":[{"uri":"file:///r"}]}`},
}

// TestResponsesReachTheirCall: a client's response to a request is a message of its own,
// which reaches any replica. It gets to the call that waits for it.
func TestResponsesReachTheirCall(t *testing.T) {
	t.Parallel()
	c := startCluster(t, options{server: shared(t), upstreams: map[string]any{"own": mcptest.Upstream(t, "-full")}})
	v := openClient(t, c)
	for _, ask := range asks {
		for _, way := range []struct{ name, call, response string }{
			{"the same replica", c.replica(0).url, c.replica(0).url},
			{"another replica", c.replica(0).url, c.replica(1).url},
			{"any replica", c.url, c.url},
		} {
			x, request := v.ask(t, way.call, ask.method)
			response := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, ask.response)
			if err := whileBusy(func() error { return v.notify(way.response, response) }); err != nil {
				t.Errorf("%s: the response at %s: %v", ask.method, way.name, err)
			}
			result, err := x.result()
			if err != nil {
				t.Fatalf("%s: response at %s: %v", ask.method, way.name, err)
			}
			if got, err := textOf(result); got != ask.response {
				t.Errorf("%s: the upstream got %q %v, want %q", ask.method, got, err, ask.response)
			}
		}
	}
}

// ask calls a tool at an address that sends a request to the client, and returns the call
// and the request.
func (c *client) ask(t *testing.T, at, method string) (*exchange, message) {
	t.Helper()
	x, err := c.send(at, "tools/call", execParams("own", "ask", fmt.Sprintf(`{"method":%q}`, method)))
	if err != nil {
		t.Fatal(err)
	}
	request, err := x.next()
	if err != nil || request.Method != method {
		t.Fatalf("got %+v, %v, want a request %s", request, err, method)
	}
	return x, request
}

// TestMessagesWithoutAStore: a response that reaches a replica which did not send the
// request is refused, with the way out. The call still gets the response from its own
// replica.
func TestMessagesWithoutAStore(t *testing.T) {
	t.Parallel()
	c := startCluster(t, options{server: map[string]any{"session_key": newKey()}, upstreams: map[string]any{"own": mcptest.Upstream(t, "-full")}})
	v := openClient(t, c)
	x, request := v.ask(t, c.replica(0).url, "roots/list")
	response := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}`, request.ID)
	err := v.notify(c.replica(1).url, response)
	if err == nil || !strings.Contains(err.Error(), "status 400") || !strings.Contains(err.Error(), sessionHeader) {
		t.Errorf("the response at another replica: %v, want status 400 and a text about routing by %s", err, sessionHeader)
	}
	if err := v.notify(c.replica(0).url, response); err != nil {
		t.Error(err)
	}
	if _, err := x.result(); err != nil {
		t.Error(err)
	}
}

// TestCancelOnAnotherReplica: notifications/cancelled cancels a call of another replica.
func TestCancelOnAnotherReplica(t *testing.T) {
	t.Parallel()
	c := startCluster(t, options{server: shared(t), upstreams: map[string]any{"own": mcptest.Upstream(t)}})
	v := openClient(t, c)
	for n := range replicaCount {
		owner, nonce := c.replica(n), fmt.Sprint("held-", n)
		v.lastID.Store(int64(100 * n))
		ended := make(chan error, 1)
		go func() {
			_, err := v.requestAt(owner.url, "tools/call", execParams("count", "work", fmt.Sprintf(`{"nonce":%q,"ms":3600000}`, nonce)))
			ended <- err
		}()
		c.waitForCall(nonce)
		cancel := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, 100*n+1)
		eventually(t, "the call ends when it is canceled elsewhere", func() (string, bool) {
			if err := v.notify(c.replica((n+1)%replicaCount).url, cancel); err != nil {
				t.Error(err)
			}
			select {
			case err := <-ended:
				return fmt.Sprint(err), err != nil
			default:
				return "it goes on", false
			}
		})
	}
}

// TestLogLevelIsShared: the log level that a client sets at one replica holds at all.
func TestLogLevelIsShared(t *testing.T) {
	t.Parallel()
	c := startCluster(t, options{server: shared(t), upstreams: map[string]any{"own": mcptest.Upstream(t, "-full")}})
	v := openClient(t, c)
	const say = `{"method":"notifications/message","params":[{"level":"warning","data":"dull"},{"level":"error","data":"sharp"}]}`
	for n := range replicaCount {
		eventually(t, fmt.Sprintf("replica %d uses the log level", n), func() (string, bool) {
			_, err := v.requestAt(c.replica(0).url, "logging/setLevel", `{"level":"error"}`)
			if err != nil {
				return err.Error(), false
			}
			x, err := v.send(c.replica(n).url, "tools/call", execParams("own", "say", say))
			if err != nil {
				return err.Error(), false
			}
			defer x.stop()
			got := x.text()
			return got, strings.Contains(got, "sharp") && !strings.Contains(got, "dull")
		})
	}
}

// TestEndIsShared: a session that is ended at one replica has ended at all, also at one that
// has not served it before.
func TestEndIsShared(t *testing.T) {
	t.Parallel()
	c := startCluster(t, options{server: shared(t)})
	eventually(t, "a session that is ended everywhere", func() (string, bool) {
		v := openClient(t, c)
		if got := v.pingAt(c.replica(0).url); got != http.StatusOK {
			return fmt.Sprint("status ", got, " before the end"), false
		}
		x, err := v.do(http.MethodDelete, c.replica(1).url, "")
		if err != nil {
			return err.Error(), false
		}
		x.stop()
		if x.status != http.StatusNoContent {
			t.Errorf("DELETE: status %d", x.status)
		}
		got := make([]int, replicaCount)
		for range 100 { // the end takes a moment to get there
			for n := range replicaCount {
				got[n] = v.pingAt(c.replica(n).url)
			}
			if slices.Equal(got, []int{404, 404, 404}) {
				return "", true
			}
		}
		return fmt.Sprint("status ", got), false // the store was busy
	})
}

// TestStreamElsewhere: an upstream sends a request outside of any call, and the client has
// its GET stream on another replica. With a store the request gets there. Without one the
// upstream gets an error that says what to do.
func TestStreamElsewhere(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		server func(t *testing.T) map[string]any
		want   string
	}{
		{"with a store", shared, `{"roots":[{"uri":"file:///r"}]}`},
		{"without a store", func(*testing.T) map[string]any { return map[string]any{"session_key": newKey()} }, sessionHeader},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			own := mcptest.Upstream(t, "-full")
			own["isolation"] = "client"
			c := startCluster(t, options{server: test.server(t), upstreams: map[string]any{"own": own}})
			v := openClient(t, c)
			stream, err := v.do(http.MethodGet, c.replica(1).url, "")
			if err != nil || stream.status != http.StatusOK {
				t.Fatalf("GET: %+v, %v", stream, err)
			}
			defer stream.stop()
			go v.answerRoots(stream, c.replica(2).url)
			eventually(t, "the response that the upstream gets", func() (string, bool) {
				got := v.askLate(t, c.replica(0).url)
				return got, strings.Contains(got, test.want) // the store may be busy
			})
		})
	}
}

// askLate lets an upstream send a request after the call that it belongs to was canceled, and
// returns the response that the upstream gets.
func (c *client) askLate(t *testing.T, at string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "late")
	call := c.lastID.Load() + 1
	go func() {
		_, _ = c.execAt(at, "own", "ask_late", fmt.Sprintf(`{"method":"roots/list","file":%q}`, file))
	}()
	waitForFile(t, file+".begun")
	if err := c.notify(at, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, call)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return waitForFile(t, file+".answer")
}

// answerRoots answers the requests of a stream at an address until it ends.
func (c *client) answerRoots(stream *exchange, at string) {
	for {
		m, err := stream.next()
		if err != nil {
			return
		}
		if m.Method == "roots/list" {
			response := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///r"}]}}`, m.ID)
			_ = whileBusy(func() error { return c.notify(at, response) })
		}
	}
}

// waitForFile waits until a file exists and returns its text.
func waitForFile(t *testing.T, path string) (text string) {
	t.Helper()
	eventually(t, "the file "+path, func() (string, bool) {
		b, err := os.ReadFile(path)
		text = string(b)
		return fmt.Sprint(err), err == nil
	})
	return text
}
