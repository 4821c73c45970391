package registry

import (
	"context"
	"strings"
	"testing"
	"time"

	"mcpx/internal/jsonrpc"
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

// panickyClient panics when it is asked something.
type panickyClient struct{ *recorder }

func (panickyClient) Request(context.Context, string, []byte) ([]byte, error) {
	panic("on purpose")
}

// TestAPanicInAWaitingCall: a call that waits for something has a goroutine of its
// own. A panic there ends the call, not the process.
func TestAPanicInAWaitingCall(t *testing.T) {
	calls := 0
	inTime(t, modernFake(1, &calls), func(t *testing.T, r *Registry) {
		_, err := jsonrpc.Wait(func(done jsonrpc.Done) {
			r.Send(t.Context(), "a", Request{Method: "tools/call", Client: panickyClient{newRecorder("A")}}, done)
		})
		if err == nil {
			t.Error("the call did not fail")
		}
		ended := make(chan struct{})
		r.Send(t.Context(), "a", Request{Method: "tools/call", Client: newRecorder("B")}, func([]byte, []byte, error) {
			defer close(ended)
			panic("on purpose")
		})
		<-ended
	})
}
