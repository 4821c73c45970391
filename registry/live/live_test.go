package live

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/listcache"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/registry/child"
	"mcpx/registry/lists"
	"mcpx/registry/upstream"
)

func TestMain(m *testing.M) {
	child.WatchIfAsked()
	mcptest.Main()
	os.Exit(m.Run())
}

// host is a Host of one supervisor, without clients.
type host struct {
	supervisor *Supervisor

	mu       sync.Mutex
	lists    []string // the published tools at each call of ListsChanged
	recorded int      // messages
}

func (h *host) Publish(s *Supervisor, change func(u *Upstream)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, wake := s.Change(change)
	wake()
}

func (h *host) ListsChanged(...string) {
	var names []string
	for _, t := range h.supervisor.Upstream().Tools {
		names = append(names, t.Name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lists = append(h.lists, strings.Join(names, " "))
}

func (h *host) Record(*Session, upstream.Direction, []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recorded++
}

func (h *host) Opened(*Session, []byte) (ready func())               { return func() {} }
func (h *host) HasUsers(*Session) bool                               { return false }
func (h *host) Notified(*Session, string, []byte, []upstream.Client) {}
func (h *host) OnlyClient(*Session) upstream.Client                  { return nil }
func (h *host) LogLevel() string                                     { return "" }
func (h *host) Subscriptions(*Session) []string                      { return nil }

// supervise runs a supervisor of an upstream until the test ends.
func supervise(t *testing.T, o Options, entry map[string]any) (*host, *Supervisor) {
	t.Helper()
	mcptest.NothingLeft(t)
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"a": entry}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(filepath.Join(t.TempDir(), "config.json"), text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	w := child.NewWatcher(zerolog.Nop())
	o.Log, o.Version, o.MessageBytes, o.ConnectsAtOnce, o.Watcher = zerolog.Nop(), "1.2.3", 1<<20, 1, w
	ctx, stop := context.WithCancel(context.Background())
	h := &host{}
	h.supervisor = New(NewGroup(ctx, h, o), &c.Profiles[0].Upstreams[0])
	var running sync.WaitGroup
	running.Go(h.supervisor.Run)
	t.Cleanup(func() {
		stop()
		running.Wait()
		w.Close()
		if state := h.supervisor.Upstream().State; state != Stopped {
			t.Errorf("it is %s after the end", state)
		}
	})
	return h, h.supervisor
}

// await waits until the upstream is in a state.
func await(t *testing.T, s *Supervisor, want State) *Upstream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		u := s.Upstream()
		if u.State == want {
			return u
		}
		if err := u.Superseded(ctx); err != nil {
			t.Fatalf("it is %s (%s), want %s", u.State, u.Reason, want)
		}
	}
}

// call calls a tool on the shared session.
func call(t *testing.T, u *Upstream, tool, arguments string) {
	t.Helper()
	params := []byte(`{"name":"` + tool + `","arguments":` + arguments + `}`)
	q := upstream.Request{Method: "tools/call", Params: params, Meta: []byte("{}")}
	if _, err := u.Session.Call(t.Context(), q, upstream.Limits{Idle: time.Minute, Total: time.Minute}); err != nil {
		t.Fatal(err)
	}
}

// A list is published before clients are notified: one that lists right after the
// notification gets the new list.
func TestListsArePublishedFirst(t *testing.T) {
	h, s := supervise(t, Options{}, mcptest.Upstream(t))
	u := await(t, s, Ready)
	call(t, u, "change", `{"notices":1}`)
	for s.Upstream().Tool("extra_0") == nil {
		if err := s.Upstream().Superseded(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.Retire()
	await(t, s, Stopped)
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.lists); n != 2 || !strings.Contains(h.lists[0], "echo") || strings.Contains(h.lists[0], "extra_0") || !strings.Contains(h.lists[1], "extra_0") {
		t.Errorf("the tools at each notice: %q", h.lists)
	}
	if h.recorded == 0 {
		t.Error("no message was recorded")
	}
}

// A person can stop an upstream, and start it again.
func TestStop(t *testing.T) {
	_, s := supervise(t, Options{}, mcptest.Upstream(t))
	first := await(t, s, Ready)
	s.Stop()
	if u := await(t, s, Stopped); u.Session != nil || !strings.Contains(u.Reason, "stopped") {
		t.Errorf("while it is stopped: %+v", u)
	}
	s.Resume()
	second := await(t, s, Ready)
	if second.Session == first.Session || !first.Session.IsOver() {
		t.Error("it has the old session")
	}
	s.Restart()
	await(t, s, Starting)
	if third := await(t, s, Ready); third.Session == second.Session {
		t.Error("a restart keeps the session")
	}
}

// A failed start says why, and when the upstream is started again.
func TestFailedStart(t *testing.T) {
	_, s := supervise(t, Options{}, mcptest.Upstream(t, "-refuse", "initialize"))
	u := await(t, s, Waiting)
	if u.Reason == "" || u.RetryAt.IsZero() || u.Advice() == "" || !u.MayStart() || u.IsListed() {
		t.Errorf("after the failure: %+v", u)
	}
	var unavailable *Unavailable
	if err := u.Unavailable(); !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "next try in") {
		t.Errorf("the error is %v", err)
	}
}

// A lazy upstream that has failed is started again only by a call.
func TestLazyFails(t *testing.T) {
	entry := mcptest.Upstream(t, "-refuse", "initialize")
	entry["start"] = "lazy"
	_, s := supervise(t, Options{}, entry)
	if u := await(t, s, Waiting); !u.RetryAt.IsZero() {
		t.Errorf("it is started again at %s", u.RetryAt)
	}
	for s.Upstream().State == Waiting { // a request from before the end of the start does not count
		s.Start()
		runtime.Gosched()
	}
	await(t, s, Waiting)
}

// A lazy upstream that is in the cache has its lists and does not run until it is needed.
func TestLazyFromCache(t *testing.T) {
	cache := listcache.New(t.TempDir(), t.TempDir()+"/key", zerolog.Nop())
	entry := mcptest.Upstream(t)
	_, eager := supervise(t, Options{Cache: cache}, entry)
	await(t, eager, Ready)
	eager.Retire()
	await(t, eager, Stopped)
	entry["start"] = "lazy"
	_, s := supervise(t, Options{Cache: cache}, entry)
	u := await(t, s, Idle)
	if u.Tool("echo") == nil || !u.NeedsStart() || !u.IsListed() || u.Revision == "" {
		t.Errorf("from the cache: %+v", u)
	}
	s.Start()
	if u := await(t, s, Ready); u.NeedsStart() || u.StartupTime == 0 {
		t.Errorf("after the start: %+v", u)
	}
}

// client is a client without a caller that has no requests to answer.
type client struct{ upstream.Client }

func (client) ID() string             { return "one" }
func (client) Owner() string          { return "one" }
func (client) Caller() *policy.Caller { return nil }

// A client's own session is opened beside the shared one, and reads no lists.
func TestFor(t *testing.T) {
	_, s := supervise(t, Options{}, mcptest.Upstream(t))
	shared := await(t, s, Ready)
	own := s.For(s.Config(), "one", client{})
	var running sync.WaitGroup
	running.Go(own.Run)
	ready := await(t, own, Ready)
	if ready.Session == shared.Session || ready.Session.Owner == nil || len(ready.Tools) != 0 || !ready.Has("tools") {
		t.Errorf("%+v", ready)
	}
	own.Retire()
	running.Wait()
	if !ready.Session.IsOver() || shared.Session.IsOver() {
		t.Error("not only the client's own session has ended")
	}
}

// Apply changes what is shown and keeps the session.
func TestApply(t *testing.T) {
	h, s := supervise(t, Options{}, mcptest.Upstream(t))
	before := await(t, s, Ready)
	next := *s.Config()
	next.Description, next.Tools = "new", config.Filter{Allow: []string{"echo"}}
	h.Publish(s, func(u *Upstream) { u.Apply(&next) })
	u := s.Upstream()
	if u.Session != before.Session || u.Description != "new" || len(u.Tools) != 1 || len(before.Tools) < 2 {
		t.Errorf("after: %+v", u)
	}
	select {
	case <-before.Changed():
	default:
		t.Error("nobody was woken")
	}
}

// NewUpstream is always ready.
func TestNewUpstream(t *testing.T) {
	u := NewUpstream("built-in", []lists.Item{{Key: "one", Raw: []byte(`{"name":"one"}`)}})
	if u.State != Ready || u.Tool("one") == nil || u.KeepsRoots() {
		t.Errorf("%+v", u)
	}
}

func TestBackoff(t *testing.T) {
	const died = time.Second // ready for so long
	for name, steps := range map[string][]struct {
		healthy, want time.Duration
	}{
		"never starts":     {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {0, 32}, {0, 60}, {0, 60}},
		"dies and dies":    {{died, 0}, {died, 1}, {died, 2}, {died, 4}},
		"a minute of it":   {{died, 0}, {died, 1}, {time.Minute, 0}, {died, 1}},
		"starts at last":   {{0, 1}, {0, 2}, {died, 0}, {died, 4}},
		"dies, then fails": {{died, 0}, {0, 1}, {0, 2}},
	} {
		var b backoff
		for i, step := range steps {
			want := step.want * time.Second
			if got := b.next(step.healthy); got > want || got < want*4/5 {
				t.Errorf("%s: wait %d is %s, want %s less a fifth at most", name, i, got, want)
			}
		}
	}
}
