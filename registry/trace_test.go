package registry

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"mcpx/internal/rpc"
	"mcpx/internal/upstream"
	"mcpx/registry/live"
)

func TestFailureKind(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		name string
		ctx  context.Context
		err  error
		want string
	}{
		{"none", t.Context(), nil, ""},
		{"none, but the client has gone", cancelled, nil, ""},
		{"the upstream's own", t.Context(), fmt.Errorf("in round 2: %w", &rpc.Error{Code: -32002}), "-32002"},
		{"time limit", t.Context(), &upstream.Timeout{}, "timeout"},
		{"time limit of all rounds", cancelled, &upstream.Timeout{}, "timeout"},
		{"cancelled", cancelled, context.Canceled, "cancelled"},
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
