package link

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"mcpx/internal/tasks"
)

// httpLink is the Link over Streamable HTTP. It POSTs each message; the HTTP response
// carries the messages that belong to it. One GET stream carries all others. httpLink
// does not use mcp-go's client, which does not forward cancellations, and allows clients
// only thirty seconds for a response.
type httpLink struct {
	Options
	client *http.Client
	base   *http.Transport // of client, below the account

	fallback bool // try legacy SSE if the upstream refuses initialize

	ctx     context.Context
	cancel  context.CancelCauseFunc
	running tasks.Group
	stream  sync.Once // opens the GET stream
	ended   sync.Once

	begun   chan struct{}  // closed when Run has set receive
	receive func(Delivery) // the receiver of Run

	tasks chan func()   // passes a task to a goroutine that waits for one
	idle  chan struct{} // has an element for each goroutine that waits
	slots chan struct{} // has an element for each notification or response being posted

	mu        sync.Mutex
	endpoint  string                        // where legacy SSE posts to; empty for Streamable HTTP
	session   string                        // Mcp-Session-Id of the upstream
	version   string                        // negotiated revision
	common    *http.Request                 // address and headers of all requests; nil: not known yet, or changed
	failure   *Failure                      // why the upstream cannot be used, if known before the end
	lost      error                         // set once the upstream has forgotten the session: nothing more is sent
	posts     map[string]context.CancelFunc // requests without a response, by ID
	others    int                           // notifications and responses that are posted or wait for it
	handshake <-chan struct{}               // closed when notifications/initialized was posted; nil before it is sent
}

// Limits of a connection to a remote upstream.
const (
	httpQueue            = 1024 // notifications and responses that wait to be posted
	httpPool             = 100  // idle connections to one upstream
	httpNotificationTime = 30 * time.Second
	httpRetryTime        = 5 * time.Second // between attempts to open the GET stream, unless the upstream sets it
	httpErrorBody        = 64 << 10
	httpIdle             = 4                      // goroutines that wait for a request to post
	httpNotifications    = 16                     // notifications and responses being posted
	httpRetryLeast       = 100 * time.Millisecond // the shortest that the upstream can set
	httpCanceled         = 5 * time.Second        // for a canceled request to end by itself
	httpForgotten        = 2 * time.Second        // how long posted requests may still end by themselves after the session was forgotten
)

// ErrSessionLost ends a link whose session the upstream does not know any more.
var ErrSessionLost = errors.New("the server has forgotten the session")

func dialHTTP(_ context.Context, o Options) (Link, error) { return newHTTPLink(o), nil }

func newHTTPLink(o Options) *httpLink {
	ctx, cancel := context.WithCancelCause(context.Background())
	base := newTransport()
	var transport http.RoundTripper = base
	if o.Account != nil {
		transport = o.Account.Transport(base)
	}
	return &httpLink{
		Options: o, ctx: ctx, cancel: cancel, base: base,
		client: &http.Client{Transport: transport, CheckRedirect: sameHost},
		begun:  make(chan struct{}),
		tasks:  make(chan func()),
		idle:   make(chan struct{}, httpIdle),
		slots:  make(chan struct{}, httpNotifications),
		posts:  map[string]context.CancelFunc{},
	}
}

// Run implements Link. Each message is received by the goroutine that has read it.
func (l *httpLink) Run(receive func(Delivery)) error {
	l.receive = receive
	close(l.begun)
	<-l.ctx.Done()
	return context.Cause(l.ctx)
}

// deliver passes a delivery to the receiver.
func (l *httpLink) deliver(d Delivery) {
	select {
	case <-l.begun:
		l.receive(d)
	case <-l.ctx.Done():
		d.Room.Free()
	}
}

// Close implements Link. It also ends the upstream's session.
func (l *httpLink) Close() {
	l.mu.Lock()
	var reason error = cmp.Or(l.failure, &Failure{Reason: "closed"})
	if l.lost != nil {
		reason = l.lost
	}
	l.mu.Unlock()
	l.end(reason)
	l.running.Close()
	l.base.CloseIdleConnections()
}

// end ends the link; the first reason counts. It returns when the upstream's session
// is ended.
func (l *httpLink) end(reason error) {
	l.ended.Do(func() {
		l.cancel(reason)
		l.deleteSession()
	})
}

// deleteSession ends the upstream's session. The upstream may refuse.
func (l *httpLink) deleteSession() {
	l.mu.Lock()
	session := l.session
	l.mu.Unlock()
	if session == "" || errors.Is(context.Cause(l.ctx), ErrSessionLost) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r, err := l.request(ctx, http.MethodDelete, nil)
	if err != nil {
		return
	}
	if response, err := l.client.Do(r); err == nil {
		_ = response.Body.Close()
	}
}

// request returns a request to the upstream. A POST shares its headers with all others: to
// change them, clone them first.
func (l *httpLink) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	common, err := l.commonRequest()
	if err != nil {
		return nil, err
	}
	r := common.WithContext(ctx)
	r.Method = method
	if body == nil {
		r.Header = r.Header.Clone()
		r.Header.Del("Content-Type")
		return r, nil
	}
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, err = r.GetBody()
	return r, err
}

// commonRequest returns a request with the address and the headers that all requests share.
// Building it for each call takes as long as the rest of the call in mcpx
// (BenchmarkRemoteSmall).
func (l *httpLink) commonRequest() (*http.Request, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.common != nil {
		return l.common, nil
	}
	r, err := http.NewRequestWithContext(l.ctx, http.MethodPost, cmp.Or(l.endpoint, l.Upstream.URL), nil)
	if err != nil {
		return nil, err
	}
	for name, value := range l.Upstream.Headers {
		setHeader(r.Header, name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if l.session != "" {
		r.Header.Set("Mcp-Session-Id", l.session)
	}
	if l.version != "" {
		r.Header.Set("Mcp-Protocol-Version", l.version)
	}
	l.common = r
	return r, nil
}

// setHeader sets a configured header. When a reused connection breaks, net/http sends a
// POST again if it has one of these two headers in canonical spelling. A call must not
// be sent twice, so these headers are written in lower case.
func setHeader(h http.Header, name, value string) {
	switch key := http.CanonicalHeaderKey(name); key {
	case "Idempotency-Key", "X-Idempotency-Key":
		h[strings.ToLower(key)] = []string{value}
	default:
		h.Set(name, value)
	}
}

// get opens an event stream, after the event with the ID last if it is not empty.
func (l *httpLink) get(ctx context.Context, last string) (*http.Response, error) {
	r, err := l.request(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	return l.client.Do(r)
}
