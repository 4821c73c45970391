package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/rpc"
	"mcpx/internal/upstream"
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
	got, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Params: []byte(`{"name":"raw","arguments":{"result":` + result + `}}`)})
	if err != nil || string(got) != result {
		t.Errorf("got %s, %v, want %s", got, err, result)
	}
}

func TestUpstreamsOwnErrorIsKept(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	_, err := callTool(t.Context(), r, "a", "fail", "{}")
	var e *rpc.Error
	if !errors.As(err, &e) || e.Code != -32042 || e.Message != "it did not work" || string(e.Data) != `{"detail":9007199254740993}` {
		t.Errorf("error %+v", err)
	}
}

func TestCancelReachesTheUpstream(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-report")})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	ended := make(chan error, 1)
	go func() {
		_, err := callTool(ctx, r, "a", "sleep", `{"ms":3600000}`)
		ended <- err
	}()
	l.wait(t, "got tools/call")
	cancel(enough)
	if err := <-ended; !errors.Is(err, enough) {
		t.Errorf("error %v, want the cause", err)
	}
	l.wait(t, "cancelled ")
}

// TestTheLimitsOfACall: an idle call ends after exactly a minute, one with progress
// after exactly a quarter of an hour.
func TestTheLimitsOfACall(t *testing.T) {
	for _, c := range []struct {
		name            string
		progress, takes time.Duration
		want            time.Duration
		err             string
	}{
		{"just in time", 0, time.Minute - 1, time.Minute - 1, ""},
		{"idle", 0, time.Hour, time.Minute, `server "a": timed out: no answer and no progress within 1m0s (its "timeout"); the call was cancelled`},
		{"progress", 59 * time.Second, 10 * time.Minute, 10 * time.Minute, ""},
		{"progress that is too rare", 61 * time.Second, 10 * time.Minute, time.Minute, `(its "timeout")`},
		{"progress forever", 10 * time.Second, time.Hour, 15 * time.Minute, `server "a": timed out: no answer within 15m0s (its "max_timeout"); the call was cancelled`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{progress: c.progress, takes: c.takes}
			inTime(t, f, func(t *testing.T, r *Registry) {
				begin := time.Now()
				_, err := call(t.Context(), r, nil)
				if took := time.Since(begin); took != c.want {
					t.Errorf("it took %s, want %s", took, c.want)
				}
				if got := fmt.Sprint(err); c.err == "" && err != nil || !strings.Contains(got, c.err) {
					t.Errorf("error %v, want %s", err, c.err)
				}
				synctest.Wait()
				if told := get(f, &f.cancelled); (told == 1) != (c.err != "") || told > 1 {
					t.Errorf("it was told %d times that the call is cancelled", told)
				}
			})
		})
	}
}

// TestAPanicCostsOneCall: Done and Progress run on the goroutine that reads the
// upstream's messages. A panic there ends neither the process nor the session.
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

// pingEvery is how often an idle session is pinged.
const pingEvery = 30 * time.Second

// TestPingsAreForIdleSessions: an idle session is pinged, one with a call is not.
func TestPingsAreForIdleSessions(t *testing.T) {
	f := &fake{progress: 10 * time.Second, takes: 10 * time.Minute}
	inTime(t, f, func(t *testing.T, r *Registry) {
		after(3*pingEvery + time.Second)
		if n := get(f, &f.pinged); n != 3 {
			t.Errorf("an idle session was asked %d times, want 3", n)
		}
		if _, err := call(t.Context(), r, nil); err != nil {
			t.Error(err)
		}
		if n := get(f, &f.pinged); n != 3 {
			t.Errorf("it was asked %d times during a call", n-3)
		}
		after(pingEvery)
		if n := get(f, &f.pinged); n != 4 {
			t.Errorf("it was asked %d times in all, want once more after the call", n)
		}
		if times := f.times(); len(times) != 1 {
			t.Errorf("it was started at %v, though it answers", times)
		}
	})
}

// TestACallAfterAPing: an upstream that handles one request at a time may handle a
// call before an earlier ping. It is not dead meanwhile.
func TestACallAfterAPing(t *testing.T) {
	f := &fake{takes: 50 * time.Second}
	inTime(t, f, func(t *testing.T, r *Registry) {
		f.set(func(f *fake) {
			f.script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) { return method == "ping", nil }
		})
		after(pingEvery)
		if _, err := call(t.Context(), r, nil); err != nil {
			t.Error(err)
		}
		after(3 * pingEvery) // it answers no ping now either, with nothing to do
		if times := f.times(); len(times) != 2 {
			t.Errorf("it was started at %v, want its end to be noticed", times)
		}
	})
}

// TestASilentSessionEnds: an idle session that does not respond to a ping in time
// ends.
func TestASilentSessionEnds(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		after(pingEvery + time.Second)
		u := r.Catalog().Upstream("a")
		f.set(func(f *fake) { f.silent, f.down = true, true })
		after(2*pingEvery - 2*time.Second)
		if now := r.Catalog().Upstream("a"); now != u {
			t.Errorf("before its time is over it is %s (%s)", now.State, now.Reason)
		}
		after(time.Second)
		if dialled := f.times(); len(dialled) != 2 || dialled[1] != 3*pingEvery.Seconds() {
			t.Errorf("it was started at %v, want its end to be noticed", dialled)
		}
	})
}

// TestAPanicInAWaitingCall: a call that waits for something has a goroutine of its
// own. A panic there ends the call, not the process.
func TestAPanicInAWaitingCall(t *testing.T) {
	calls := 0
	inTime(t, modernFake(1, &calls), func(t *testing.T, r *Registry) {
		_, err := rpc.Wait(func(done rpc.Done) {
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

// panickyClient panics when it is asked something.
type panickyClient struct{ *recorder }

func (panickyClient) Request(context.Context, string, []byte) ([]byte, error) {
	panic("on purpose")
}
