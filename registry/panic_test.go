package registry

import (
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestAPanicCostsOneCall: a panic in the completion of a call, which runs on the
// goroutine that reads the upstream's messages, ends neither the process nor the
// session.
func TestAPanicCostsOneCall(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t)})
	pid := mustCall(t, r, "a", "pid", "{}")
	for _, progress := range []bool{false, true} {
		request := Request{Method: "tools/call", Meta: []byte("{}"), Params: []byte(`{"name":"progress","arguments":{"steps":1}}`)}
		done := make(chan struct{})
		if progress {
			request.Progress = func([]byte) { panic("on purpose") }
		}
		r.Send(t.Context(), "a", request, func([]byte, []byte, error) {
			close(done)
			panic("on purpose")
		})
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("the call never ends")
		}
	}
	if again := mustCall(t, r, "a", "pid", "{}"); again != pid {
		t.Error("the session was lost")
	}
	l.waitFor(t, "panic while handling a message", 3)
	if !strings.Contains(l.String(), "on purpose") {
		t.Error("the log does not say what happened")
	}
}
