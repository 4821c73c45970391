package upstream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// listener is the part of a peer that handles subscriptions/listen.
type listener struct {
	*peer
	mu     sync.Mutex
	takes  time.Duration // until it acknowledges a request
	id     string        // of the open request
	filter string        // that it acknowledged last
}

// listen makes a peer acknowledge subscriptions/listen.
func listen(p *peer) *listener {
	l := &listener{peer: p}
	p.on("subscriptions/listen", func(m rpc.Message) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.id = string(m.ID)
		time.AfterFunc(l.takes, func() { l.acknowledge(m) })
	})
	p.on("notifications/cancelled", func(rpc.Message) { // the end of one ends all, as mcp-go has it
		l.mu.Lock()
		defer l.mu.Unlock()
		l.id, l.filter = "", ""
	})
	return l
}

// acknowledge acknowledges a request unless it was canceled.
func (l *listener) acknowledge(m rpc.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == string(m.ID) {
		l.filter = string(rawjson.Get(m.Params, "notifications"))
		l.send(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, m.ID)
	}
}

// listens returns the filter that the peer listens to.
func (l *listener) listens() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.filter
}

// TestSubscribeWaitsForTheUpstream: the request ends once the upstream has acknowledged the
// new filter, so no update is missed.
func TestSubscribeWaitsForTheUpstream(t *testing.T) {
	session2026(t, func(t *testing.T, f fixture) {
		l := listen(f.peer)
		l.takes = time.Second
		change := func(method string) error {
			_, err := f.Call(t.Context(), Request{Method: method, Client: &client{id: "one"}}, Limits{})
			return err
		}
		subscribe := func(uri string) {
			f.host.subscribe(uri)
			if err := change("resources/subscribe"); err != nil {
				t.Error(err)
			}
			if filter := l.listens(); !strings.Contains(filter, `"`+uri+`"`) || !strings.Contains(filter, `"toolsListChanged":true`) {
				t.Errorf("%s counts as subscribed to, but the upstream listens for %q", uri, filter)
			}
		}
		var all sync.WaitGroup
		for _, uri := range []string{"test://one", "test://two"} {
			all.Go(func() { subscribe(uri) })
		}
		all.Wait()
		for i := range 20 { // the newest filter is the one that counts
			subscribe(fmt.Sprint("test://", i))
		}
		f.host.uris = nil
		if err := change("resources/unsubscribe"); err != nil {
			t.Error(err)
		}
		after(2 * l.takes)
		if filter := l.listens(); filter != `{"toolsListChanged":true}` {
			t.Errorf("after unsubscribing it listens for %s", filter)
		}
		f.peer.on("subscriptions/listen", nil) // some upstreams acknowledge nothing
		f.host.subscribe("test://slow")
		begin := time.Now()
		if err := change("resources/subscribe"); err != nil || time.Since(begin) != listenTime {
			t.Errorf("without an acknowledgment it took %s, %v", time.Since(begin), err)
		}
		time.AfterFunc(l.takes/2, f.peer.die)
		if err := change("resources/subscribe"); !errors.Is(err, rpc.ErrClosed) {
			t.Errorf("while the upstream dies: %v", err)
		}
	})
}

// TestListsAfterABrokenStream: lists may have changed while no stream was open. They are
// read again when the upstream listens again, and not before.
func TestListsAfterABrokenStream(t *testing.T) {
	const changed = "notifications/tools/list_changed"
	inTime(t, func(t *testing.T, f fixture) {
		l := listen(f.peer)
		f.Speak2026([]byte(`{"capabilities":{"tools":{"listChanged":true},"prompts":{}}}`))
		after(time.Minute)
		if got := f.host.heard(); got != nil {
			t.Errorf("while it listens: %q", got)
		}
		f.peer.respond([]byte(l.id), done)
		after(relistenPause - 1)
		if got := f.host.heard(); got != nil {
			t.Errorf("before it listens again: %q", got)
		}
		after(1)
		if got := f.host.heard(); !slices.Equal(got, []string{changed}) {
			t.Errorf("when it listens again: %q", got)
		}
		f.peer.answer("subscriptions/listen", `"error":{"code":-32601,"message":"not any more"}`, 0)
		f.peer.respond([]byte(l.id), done)
		after(10 * relistenPause)
		if got, n := f.host.heard(), len(f.peer.got("subscriptions/listen")); got != nil || n != 12 {
			t.Errorf("while it refuses to listen: %q after %d requests", got, n)
		}
	})
}
