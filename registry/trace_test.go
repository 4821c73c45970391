package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/rpc"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// tracer sends its own _meta, and notes the requests it gets and how their spans end.
type tracer struct{ notes []string }

func (c *tracer) Send(_ context.Context, q TracedRequest) ([]byte, Span) {
	c.notes = append(c.notes, fmt.Sprintf("%s to %s over %s, %s", q.Method, q.Server, q.Transport, q.Meta))
	return []byte(`{"traceparent":"mine"}`), c
}

func (c *tracer) End(_ []byte, failure string) { c.notes = append(c.notes, "end "+failure) }

// TestTracer: what a Tracer gets of requests to upstreams, and that they carry its _meta.
func TestTracer(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	c := &tracer{}
	r.Tracer = c
	q := upstream.Request{Method: "tools/call", Params: []byte(`{"name":"params"}`), Meta: []byte(`{"a":1}`)}
	begun := "tools/call to a over pipe, " + string(q.Meta)
	for range 2 { // the second does not wait for the upstream
		result, err := rpc.Wait(func(done rpc.Done) { r.Go(t.Context(), "a", q, done) })
		if got := result.Take(); err != nil || !strings.Contains(string(got), "mine") {
			t.Errorf("the upstream got %s, %v", got, err)
		}
	}
	if _, err := r.Call(t.Context(), "nobody", q); err == nil {
		t.Error("no error")
	}
	if want := []string{begun, "end ", begun, "end ", "tools/call to nobody over tcp, " + string(q.Meta), "end unavailable"}; !slices.Equal(c.notes, want) {
		t.Errorf("the tracer has %q, want %q", c.notes, want)
	}
}

func TestFailureKind(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		name string
		ctx  context.Context
		err  error
		want string
	}{
		{"none", t.Context(), nil, ""},
		{"none, but the client has gone", canceled, nil, ""},
		{"the upstream's own", t.Context(), fmt.Errorf("in round 2: %w", &rpc.Error{Code: -32002}), "-32002"},
		{"time limit", t.Context(), &upstream.Timeout{}, "timeout"},
		{"time limit of all rounds", canceled, &upstream.Timeout{}, "timeout"},
		{"cancelled", canceled, context.Canceled, "cancelled"},
		{"lost", t.Context(), &upstream.Lost{}, "lost"},
		{"unanswered", t.Context(), &upstream.Unanswered{}, "unanswered"},
		{"unavailable", t.Context(), &live.Unavailable{}, "unavailable"},
		{"another", t.Context(), errors.New("x"), "_OTHER"},
	} {
		if got := failureKind(row.ctx, row.err); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
