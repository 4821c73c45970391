package upstream

import (
	"context"
	"sync"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/tasks"

	"github.com/mark3labs/mcp-go/mcp"
)

// filterState tracks the filter of subscriptions/listen: which notifications are
// wanted, and which of them the upstream has acknowledged. Every change of the
// filter has a generation.
type filterState struct {
	changed tasks.Signal // a newer generation is requested

	mu           sync.Mutex
	requested    int           // newest generation
	acknowledged int           // newest generation that the upstream acknowledged, or that failed
	news         chan struct{} // closed when acknowledged changes
	missed       bool          // lists may have changed while no request was open
}

// Times for subscriptions/listen.
const (
	listenTime    = 5 * time.Second  // for the acknowledgment, which some upstreams do not send
	relistenPause = 10 * time.Second // before a request that failed is sent again
)

// request requests a new filter and returns its generation; waitListening waits
// until the upstream has acknowledged it.
func (f *filterState) request() (generation int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requested++
	f.changed.Notify()
	return f.requested
}

// newest returns the newest requested generation and clears the signal.
func (f *filterState) newest() (generation int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed.Clear()
	return f.requested
}

// acknowledge records that the upstream has acknowledged a generation. It reports
// whether changes of lists may have been missed before.
func (f *filterState) acknowledge(generation int) (missed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(generation)
	missed, f.missed = f.missed, false
	return missed
}

// fail records that the request for a generation has ended, so that nobody waits for it.
func (f *filterState) fail(generation int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(generation)
	f.missed = true
}

func (f *filterState) advance(generation int) {
	f.acknowledged = max(f.acknowledged, generation)
	close(f.news)
	f.news = make(chan struct{})
}

// waitListening waits until the upstream has acknowledged a generation: a client
// that got the response to its subscription may change the resource at once.
func (s *Session) waitListening(ctx context.Context, generation int) error {
	limit := time.After(listenTime)
	for f := &s.state2026().filterState; ; {
		f.mu.Lock()
		acknowledged, news := f.acknowledged, f.news
		f.mu.Unlock()
		if acknowledged >= generation {
			return nil
		}
		select {
		case <-news:
		case <-limit:
			return nil
		case <-s.Done():
			return rpc.ErrClosed // the filter of the next session has it, too
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// listen keeps a subscriptions/listen request open until the session ends, and
// replaces it when the filter changes.
func (s *Session) listen(capabilities []byte) {
	for !s.IsOver() {
		generation := s.state2026().newest() // before the filter is read
		s.listenTo(s.filter(capabilities), generation)
	}
}

// filter returns the wanted notifications: the lists that can change, and the
// resources that clients subscribed to. It is nil if there are none.
func (s *Session) filter(capabilities []byte) (filter []byte) {
	for _, list := range Listable {
		if string(rawjson.Get(rawjson.Get(capabilities, list), "listChanged")) == "true" {
			filter = rawjson.With(filter, list+"ListChanged", []byte("true"))
		}
	}
	uris := s.Host.Subscriptions()
	if len(uris) == 0 {
		return filter
	}
	list := []byte("[")
	for _, uri := range uris {
		list = rawjson.AppendElement(list, rawjson.AppendString(nil, uri))
	}
	return rawjson.With(filter, "resourceSubscriptions", append(list, ']'))
}

// acknowledgment is the tag of a subscriptions/listen request. It is called when the
// upstream acknowledges the request.
type acknowledgment func()

// listenTo keeps one request open until the filter changes, or the session or the
// request ends. For a nil filter nothing is sent.
func (s *Session) listenTo(filter []byte, generation int) {
	ctx, cancel := context.WithCancel(s.conn.Context())
	ended := make(chan error, 1)
	var request sync.WaitGroup
	defer request.Wait() // its cancellation is sent before the next request
	defer cancel()
	if filter == nil {
		s.state2026().acknowledge(generation)
	} else {
		request.Go(func() {
			_, err := s.conn.Call(ctx, rpc.Request{
				IsBackground: true, // it stays open as long as the session
				Method:       "subscriptions/listen",
				Params:       rawjson.With([]byte("{}"), "notifications", filter),
				Meta:         s.requestMeta(nil, nil),
				Tag:          acknowledgment(func() { s.listening(filter, generation) }),
			})
			ended <- err
		})
	}
	select {
	case <-s.state2026().changed:
	case <-s.Done():
	case err := <-ended:
		s.Log.Debug().Err(err).Msg("subscriptions/listen ended")
		s.state2026().fail(generation)
		select {
		case <-s.state2026().changed:
		case <-time.After(relistenPause):
		case <-s.Done():
		}
	}
}

// listening records that the upstream has acknowledged a filter. Lists that may have
// changed before are read again.
func (s *Session) listening(filter []byte, generation int) {
	if !s.state2026().acknowledge(generation) {
		return
	}
	for _, list := range Listable {
		if rawjson.Get(filter, list+"ListChanged") != nil {
			s.Host.Notified(ListChanged(list), nil, nil)
		}
	}
}

// acknowledged handles the acknowledgment of a subscriptions/listen request. Its
// _meta names the request; otherwise the stream that carried it does.
func (s *Session) acknowledged(params, callID []byte) {
	if id := rawjson.Get(rawjson.Get(params, "_meta"), mcp.MetaKeySubscriptionID); id != nil {
		callID = id
	}
	if c := s.conn.Pending(callID); c != nil {
		if acknowledge, ok := c.Tag.(acknowledgment); ok {
			acknowledge()
		}
	}
}

// Listable are the capabilities that have lists.
var Listable = []string{"tools", "prompts", "resources"}

// ListChanged returns the notification that a list of the capability has changed.
func ListChanged(capability string) string { return "notifications/" + capability + "/list_changed" }
