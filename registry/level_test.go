package registry

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

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
