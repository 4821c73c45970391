package registry

import (
	"context"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/rawjson"
)

// An upstream of the new way is told in one request all that mcpx wants to hear
// of, subscriptions/listen, which is made anew when that changes.

// listener is how far an upstream listens to what is wanted of it.
type listener struct {
	changed chan struct{} // capacity 1: what is wanted has

	mu     sync.Mutex
	wanted int           // how often it has
	heard  int           // up to which of these the upstream listens
	news   chan struct{} // closed when that moves
	missed bool          // lists may have changed while nobody listened
}

// What an upstream gets.
const (
	listenTime    = 5 * time.Second  // to say that it listens: it must, but may not
	relistenPause = 10 * time.Second // keeps what breaks at once from being asked for in a loop
)

func newListener() listener {
	return listener{changed: make(chan struct{}, 1), news: make(chan struct{})}
}

// want has the upstream listen to what is wanted now. It returns what heard will
// be then.
func (l *listener) want() (wanted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wanted++
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.wanted
}

// latest is what want has returned last, which is then taken care of.
func (l *listener) latest() (wanted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.changed:
	default:
	}
	return l.wanted
}

// hears notes that the upstream listens to what was wanted. It reports whether
// lists may have changed before it did.
func (l *listener) hears(wanted int) (missed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.move(wanted)
	missed, l.missed = l.missed, false
	return missed
}

// broke notes that the upstream does not listen. Who waits for it need not.
func (l *listener) broke(wanted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.move(wanted)
	l.missed = true
}

func (l *listener) move(wanted int) {
	l.heard = max(l.heard, wanted)
	close(l.news)
	l.news = make(chan struct{})
}

// listens waits until the upstream listens: a client that is told so may change at
// once what it wants to hear of.
func (s *Session) listens(ctx context.Context, wanted int) error {
	patience := time.NewTimer(listenTime)
	defer patience.Stop()
	for l := &s.modern.listener; ; {
		l.mu.Lock()
		heard, news := l.heard, l.news
		l.mu.Unlock()
		if heard >= wanted {
			return nil
		}
		select {
		case <-news:
		case <-patience.C:
			return nil
		case <-s.ctx.Done():
			return errOver // the next session listens for it, too
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// listen keeps the upstream listening until the session ends.
func (s *Session) listen(capabilities []byte) {
	for s.ctx.Err() == nil {
		wanted := s.modern.latest() // before it is looked what that is
		s.listenTo(s.filter(capabilities), wanted)
	}
}

// filter is what is wanted: the lists that can change, and the resources that
// clients want to hear of. It is nil if that is nothing.
func (s *Session) filter(capabilities []byte) (filter []byte) {
	for _, list := range listable {
		if string(rawjson.Get(rawjson.Get(capabilities, list), "listChanged")) == "true" {
			filter = rawjson.With(filter, list+"ListChanged", []byte("true"))
		}
	}
	uris := s.peer.subscribed()
	if len(uris) == 0 {
		return filter
	}
	list := []byte("[")
	for i, uri := range uris {
		if i > 0 {
			list = append(list, ',')
		}
		list = rawjson.AppendString(list, uri)
	}
	return rawjson.With(filter, "resourceSubscriptions", append(list, ']'))
}

// listenTo listens until what is wanted changes, or the session or the stream
// ends. For a nil filter the upstream is not asked.
func (s *Session) listenTo(filter []byte, wanted int) {
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	var asking sync.WaitGroup
	defer asking.Wait() // the end of this one is told before the next begins
	defer cancel()
	if filter == nil {
		s.modern.hears(wanted)
	} else {
		params := rawjson.With([]byte("{}"), "notifications", filter)
		asking.Go(func() {
			_, err := s.inRounds(ctx, Request{Method: "subscriptions/listen", Params: params, acknowledged: func() { s.hears(filter, wanted) }})
			ended <- err
		})
	}
	select {
	case <-s.modern.changed:
	case <-s.ctx.Done():
	case err := <-ended:
		s.log.Debug().Err(err).Msg("subscriptions/listen ended")
		s.modern.broke(wanted)
		select {
		case <-s.modern.changed:
		case <-time.After(relistenPause):
		case <-s.ctx.Done():
		}
	}
}

// hears takes it that the upstream listens. Lists that may have changed before are
// listed again.
func (s *Session) hears(filter []byte, wanted int) {
	if !s.modern.hears(wanted) {
		return
	}
	for _, list := range listable {
		if rawjson.Get(filter, list+"ListChanged") != nil {
			s.peer.notified(listChanged(list), nil, nil)
		}
	}
}

// acknowledged takes what an upstream says when it listens, with the id of the
// request on whose stream it came, if that is known.
func (s *Session) acknowledged(params, of []byte) {
	if id := rawjson.Get(rawjson.Get(params, "_meta"), mcp.MetaKeySubscriptionID); id != nil {
		of = id
	}
	if c := s.waiting(of); c != nil && c.request.acknowledged != nil {
		c.request.acknowledged()
	}
}
