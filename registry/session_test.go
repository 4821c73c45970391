package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/rpc"
	"mcpx/registry/registrytest"
	"mcpx/registry/upstream"
)

func TestCallsShareOneSession(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	pid := mustCall(t, r, "a", "pid", "{}")
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			text := fmt.Sprintf("call %d", i)
			got, err := callTool(t.Context(), r, "a", "sleep", fmt.Sprintf(`{"ms":%d,"text":%q}`, i%7, text))
			if err != nil || got != text {
				t.Errorf("got %q, %v, want %q", got, err, text)
			}
		})
	}
	wg.Wait()
	if again := mustCall(t, r, "a", "pid", "{}"); again != pid {
		t.Errorf("the upstream's pid went from %s to %s", pid, again)
	}
}

func TestArgumentsAndResultsStayBytes(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	arguments := `{"big":9007199254740993, "list":[ 1,2 ],"tiny":1e-400,"text":"\u00e9\ud83d\ude00"}`
	if got := mustCall(t, r, "a", "arguments", arguments); got != arguments {
		t.Errorf("the upstream got %s, want %s", got, arguments)
	}
	result := `{"content":[{"type":"hologram","id":9007199254740993}],"structuredContent":{"a": 1.0},"isError":false,"more":[1]}`
	got, err := r.Call(t.Context(), "a", upstream.Request{Method: "tools/call", Params: []byte(`{"name":"raw","arguments":{"result":` + result + `}}`)})
	if err != nil || string(got) != result {
		t.Errorf("got %s, %v, want %s", got, err, result)
	}
}

func TestStrayOutputIsSkippedWithOneWarning(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-stray", "Listening on \x1b[1mstdio\x1b[0m")})
	for range 3 {
		mustCall(t, r, "a", "echo", `{"text":"x"}`)
	}
	if n := l.count("text that is not a message"); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
}

func TestTooLongAMessageEndsTheSession(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	_, err := callTool(t.Context(), r, "a", "large", `{"bytes":2000000}`)
	var lost *upstream.Lost
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "sent a message of more than 1048576 bytes (limits.message_bytes)") {
		t.Errorf("error %v", err)
	}
	if got := mustCall(t, r, "a", "echo", `{"text":"again"}`); got != "again" {
		t.Errorf("got %q", got)
	}
}

// TestAPanicInAWaitingCall: a call that waits for something has a goroutine of its
// own. A panic there ends the call, not the process.
func TestAPanicInAWaitingCall(t *testing.T) {
	inTime(t, registrytest.New2026(), func(t *testing.T, r *Registry) {
		_, err := rpc.Wait(func(done rpc.Done) {
			r.Go(t.Context(), "a", upstream.Request{Method: "tools/call", Client: panickyClient{newRecorder("A")}}, done)
		})
		if err == nil {
			t.Error("the call did not fail")
		}
		ended := make(chan struct{})
		r.Go(t.Context(), "a", upstream.Request{Method: "tools/call", Client: newRecorder("B")}, func(rpc.Result, error) {
			defer close(ended)
			panic("on purpose")
		})
		<-ended
	})
}

// panickyClient panics when it is asked something.
type panickyClient struct{ *recorder }

func (panickyClient) Request(context.Context, string, []byte) ([]byte, error) {
	panic("on purpose")
}
