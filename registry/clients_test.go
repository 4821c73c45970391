package registry

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/registry/upstream"
)

// recorder is a client that responds with its own name and records every message.
type recorder struct {
	id     string
	owner  string // if it is another
	caller *policy.Caller
	mu     sync.Mutex
	told   []string
	asked  []string
	news   chan struct{}
}

func newRecorder(id string) *recorder { return &recorder{id: id, news: make(chan struct{}, 1000)} }

func (c *recorder) ID() string { return c.id }

func (c *recorder) Owner() string { return cmp.Or(c.owner, c.id) }

func (c *recorder) Caller() *policy.Caller { return c.caller }

func (c *recorder) Request(_ context.Context, method string, params []byte) ([]byte, error) {
	c.mu.Lock()
	c.asked = append(c.asked, method+" "+string(params))
	c.mu.Unlock()
	c.news <- struct{}{}
	return fmt.Appendf(nil, `{"from":%q}`, c.id), nil
}

func (c *recorder) Notify(method string, params []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, strings.TrimSpace(method+" "+string(params)))
	c.news <- struct{}{}
}

// heard returns the params of the notifications that came with a method.
func (c *recorder) heard(method string) (params []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, told := range c.told {
		if text, ok := strings.CutPrefix(told, method+" "); ok {
			params = append(params, text)
		}
	}
	return params
}

// wait waits until the client has all these messages.
func (c *recorder) wait(t *testing.T, want ...string) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		c.mu.Lock()
		all := slices.Concat(c.told, c.asked)
		c.mu.Unlock()
		missing := slices.DeleteFunc(slices.Clone(want), func(w string) bool { return slices.Contains(all, w) })
		if len(missing) == 0 {
			return
		}
		select {
		case <-c.news:
		case <-limit:
			t.Fatalf("%s was never told %q, only %q", c.id, missing, all)
		}
	}
}

// callAs calls a tool of the upstream a for a client.
func callAs(t *testing.T, r *Registry, c upstream.Client, tool, arguments string) (string, error) {
	t.Helper()
	return callFor(t.Context(), r, c, "a", tool, arguments)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !is(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestLogMessagesCarryTheirServer(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	one, two := newRecorder("one"), newRecorder("two")
	r.Attach(one)
	r.Attach(two)
	if _, err := callAs(t, r, one, "say", `{"method":"notifications/message","params":[{"level":"info","data":1},{"level":"info","logger":"db","data":{"x":9007199254740993}}]}`); err != nil {
		t.Fatal(err)
	}
	want := []string{`{"level":"info","data":1,"logger":"a"}`, `{"level":"info","logger":"a/db","data":{"x":9007199254740993}}`}
	if got := one.heard("notifications/message"); !slices.Equal(got, want) {
		t.Errorf("one was told %q, want %q", got, want)
	}
	if got := two.heard("notifications/message"); got != nil {
		t.Errorf("two was told %q", got)
	}
}

// TestRootsAtTheStartGoToTheOnlyClient: an upstream may send requests before any call, if
// there is one client.
func TestRootsAtTheStartGoToTheOnlyClient(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-ask-roots")})
	l.wait(t, "roots:")
	if l.count("no client has a call in flight") != 1 {
		t.Error("without a client the roots were not refused")
	}
	r.Attach(newRecorder("one"))
	_, _ = callTool(t.Context(), r, "a", "crash", "{}")
	mustCall(t, r, "a", "pid", "{}")
	l.wait(t, `roots: {\"from\":\"one\"}`)
}
