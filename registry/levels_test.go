package registry

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"mcpx/config"
	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
)

// leveled is an upstream with logging that takes a level when it is let.
type leveled struct {
	greet chan struct{} // closed: initialize is answered
	asked chan struct{} // a level is here
	take  chan struct{} // a level may be taken
	taken atomic.Int64
}

func (l *leveled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	result := "{}"
	switch method, _ := rawjson.String(rawjson.Get(body, "method")); method {
	case "initialize":
		<-l.greet
		result = `{"protocolVersion":"2025-11-25","capabilities":{"logging":{}},"serverInfo":{"name":"leveled","version":"1"}}`
	case "logging/setLevel":
		l.asked <- struct{}{}
		select {
		case <-l.take:
			l.taken.Add(1)
		case <-r.Context().Done():
			return
		}
	}
	if rawjson.Get(body, "id") == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, rawjson.Get(body, "id"), result)
}

func TestLevelIsTheMostTalkative(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-full"), "b": mcptest.Upstream(t)})
	r.Settled(t.Context(), "a")
	one, two := newRecorder("one"), newRecorder("two")
	r.Attach(one)
	r.Attach(two)
	r.SetLevel(one, "warning")
	l.waitFor(t, "logging/setLevel warning", 1)
	r.SetLevel(two, "debug")
	l.waitFor(t, "logging/setLevel debug", 1)
	r.SetLevel(one, "error")
	l.waitFor(t, "logging/setLevel debug", 2)
	_, _ = callTool(t.Context(), r, "a", "crash", "{}")
	mustCall(t, r, "a", "pid", "{}")
	l.waitFor(t, "logging/setLevel debug", 3)
}

// TestLevelsOfTwoClients: when two set theirs in the same moment, the upstream's last
// word is what both want.
func TestLevelsOfTwoClients(t *testing.T) {
	last := ""
	f := loggingFake(&last)
	inTime(t, f, func(t *testing.T, r *Registry) {
		one, two := newRecorder("one"), newRecorder("two")
		r.Attach(one)
		r.Attach(two)
		for i := range 3000 {
			r.SetLevel(one, "error")
			r.SetLevel(two, "error")
			var both sync.WaitGroup
			both.Go(func() { r.SetLevel(one, "info") })
			both.Go(func() { r.SetLevel(two, "debug") })
			both.Wait()
			f.mu.Lock()
			got := last
			f.mu.Unlock()
			if got != "debug" {
				t.Fatalf("time %d: the upstream is left with %s", i, got)
			}
		}
	})
}

// TestALevelWhileASessionOpens: a client's own session hears of what is set while
// it is opened.
func TestALevelWhileASessionOpens(t *testing.T) {
	last := ""
	f := loggingFake(&last)
	inTime(t, f, func(t *testing.T, r *Registry) {
		for i := range 3000 {
			c := newRecorder(fmt.Sprint(i))
			r.Attach(c)
			r.SetLevel(c, "error")
			var both sync.WaitGroup
			both.Go(func() {
				if _, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c}); err != nil {
					t.Error(err)
				}
			})
			both.Go(func() {
				for range i % 400 { // about what it takes to open it
					runtime.Gosched()
				}
				r.SetLevel(c, "debug")
			})
			both.Wait()
			synctest.Wait()
			for _, s := range r.sessions.of("a") {
				if got := *s.level.Load(); got != "debug" {
					t.Fatalf("time %d: its session is left with %s", i, got)
				}
			}
			r.Detach(t.Context(), c)
			synctest.Wait()
		}
	}, func(c *config.Upstream) { c.Isolation = config.PerClient })
}

// The messages of a call that comes right after the level are wanted too.
func TestALevelIsTakenBeforeTheNextCall(t *testing.T) {
	l := &leveled{greet: make(chan struct{}), asked: make(chan struct{}, 10), take: make(chan struct{}, 10)}
	remote := httptest.NewServer(l)
	t.Cleanup(remote.Close)
	r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "http"}})
	client := newRecorder("one")
	r.Attach(client)
	r.SetLevel(client, "debug") // nobody is there to be told
	l.take <- struct{}{}
	close(l.greet)
	if u := r.Settled(t.Context(), "a"); u.State != Ready || l.taken.Load() != 1 {
		t.Errorf("a new session is %s with %d levels taken, want 1", u.State, l.taken.Load())
	}
	<-l.asked

	set := make(chan struct{})
	go func() {
		defer close(set)
		r.SetLevel(client, "info")
	}()
	<-l.asked
	select {
	case <-set:
		t.Error("the level counts as set before the upstream has it")
	default:
	}
	l.take <- struct{}{}
	<-set
	if got := l.taken.Load(); got != 2 {
		t.Errorf("%d levels taken, want 2", got)
	}
}

func TestASlowUpstreamDelaysNoLevel(t *testing.T) {
	l := &leveled{greet: make(chan struct{}), asked: make(chan struct{}, 10), take: make(chan struct{})}
	close(l.greet)
	remote := httptest.NewServer(l)
	t.Cleanup(remote.Close)
	r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "http"}})
	r.Settled(t.Context(), "a")
	client := newRecorder("one")
	r.Attach(client)
	r.SetLevel(client, "debug") // returns though nothing is taken
	<-l.asked
	if got := l.taken.Load(); got != 0 {
		t.Errorf("%d levels taken", got)
	}
}
