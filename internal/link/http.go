package link

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"mcpx/internal/rpc"
)

// httpLink is the Link over Streamable HTTP. It POSTs each message; the HTTP response
// carries the messages that belong to it. One GET stream carries all others. httpLink
// does not use mcp-go's client, which does not forward cancellations, and allows clients
// only thirty seconds for a response.
type httpLink struct {
	Options
	client *http.Client

	fallback bool // try legacy SSE if the upstream refuses initialize

	ctx      context.Context
	cancel   context.CancelCauseFunc
	outgoing chan []byte
	incoming chan delivery
	running  sync.WaitGroup
	stream   sync.Once // opens the GET stream
	ended    sync.Once

	mu       sync.Mutex
	endpoint string                        // where legacy SSE posts to; empty for Streamable HTTP
	session  string                        // Mcp-Session-Id of the upstream
	version  string                        // negotiated revision
	failure  *Failure                      // why the upstream cannot be used, if known before the end
	posts    map[string]context.CancelFunc // requests without a response, by ID
}

// delivery is what Receive returns: a message, or the end of one call.
type delivery struct {
	message, callID []byte
	err             error
}

// Limits of a connection to a remote upstream.
const (
	httpQueue            = 1024 // messages that wait to be sent
	httpIncoming         = 64   // messages that wait to be handled
	httpPool             = 100  // idle connections to one upstream
	httpNotificationTime = 30 * time.Second
	httpRetryTime        = 5 * time.Second // between attempts to open the GET stream, unless the upstream sets it
	httpErrorBody        = 64 << 10
	httpNotifications    = 16                     // notifications and responses being posted
	httpRetryLeast       = 100 * time.Millisecond // the shortest that the upstream can set
	httpCancelled        = 5 * time.Second        // for a canceled request to end by itself
)

// errSessionLost ends a link whose session the upstream does not know any more.
var errSessionLost = errors.New("the server has forgotten the session")

func dialHTTP(_ context.Context, o Options) (Link, error) {
	l := newHTTPLink(o)
	l.running.Go(l.send)
	return l, nil
}

func newHTTPLink(o Options) *httpLink {
	ctx, cancel := context.WithCancelCause(context.Background())
	var transport http.RoundTripper = newTransport()
	if o.Account != nil {
		transport = o.Account.Transport(transport)
	}
	return &httpLink{
		Options: o, ctx: ctx, cancel: cancel,
		client:   &http.Client{Transport: transport, CheckRedirect: sameHost},
		outgoing: make(chan []byte, httpQueue),
		incoming: make(chan delivery, httpIncoming),
		posts:    map[string]context.CancelFunc{},
	}
}

// Send implements Link.
func (l *httpLink) Send(message []byte) error {
	select {
	case <-l.ctx.Done():
		return rpc.ErrClosed
	default:
	}
	select {
	case l.outgoing <- message:
		return nil
	default:
		return &Failure{Reason: "the call was not sent: the server does not accept messages"}
	}
}

// Receive implements Link. Messages that came before the end are received first.
func (l *httpLink) Receive() (message, callID []byte, err error) {
	var d delivery
	select {
	case d = <-l.incoming:
	case <-l.ctx.Done():
		select {
		case d = <-l.incoming:
		default:
			return nil, nil, context.Cause(l.ctx)
		}
	}
	return d.message, d.callID, d.err
}

// Close implements Link. It also ends the upstream's session.
func (l *httpLink) Close() {
	l.mu.Lock()
	reason := cmp.Or(l.failure, &Failure{Reason: "closed"})
	l.mu.Unlock()
	l.end(reason)
	l.running.Wait()
	l.client.CloseIdleConnections()
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
	if session == "" || errors.Is(context.Cause(l.ctx), errSessionLost) {
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

func (l *httpLink) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	l.mu.Lock()
	address := cmp.Or(l.endpoint, l.Upstream.URL)
	l.mu.Unlock()
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range l.Upstream.Headers {
		setHeader(r.Header, name, value)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != "" {
		r.Header.Set("Mcp-Session-Id", l.session)
	}
	if l.version != "" {
		r.Header.Set("Mcp-Protocol-Version", l.version)
	}
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
