package registry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
)

// httpLink talks Streamable HTTP to an upstream: a POST a message, whose answer
// holds the messages that belong to it, and one GET for all others. mcp-go's
// client is not used: it never tells the upstream of a cancelled call, and gives
// a client thirty seconds to answer.
type httpLink struct {
	config *config.Upstream
	client *http.Client
	log    zerolog.Logger
	limit  int // bytes of a message
	intake *intake

	fallback bool // it may turn out to speak the older transport

	ctx      context.Context
	cancel   context.CancelCauseFunc
	outgoing chan []byte
	incoming chan delivery
	running  sync.WaitGroup
	listen   sync.Once
	ended    sync.Once

	mu       sync.Mutex
	endpoint string                        // of the older transport: where to post; empty otherwise
	session  string                        // the id the upstream gave
	version  string                        // the revision that was agreed on
	failure  *failure                      // why it refuses to talk, if it does
	posts    map[string]context.CancelFunc // requests that are not answered, by id
}

// delivery is what Receive returns: a message, or the end of one call.
type delivery struct {
	message, of []byte
	err         error
}

// What a connection to a remote upstream gets.
const (
	httpQueue      = 1024 // messages that wait to be sent
	httpIncoming   = 64   // messages that wait to be handled
	httpPool       = 100  // idle connections to one upstream
	httpNoteTime   = 30 * time.Second
	httpRetryTime  = 5 * time.Second // between attempts to listen, if the upstream does not say
	httpErrorBody  = 64 << 10
	httpNotes      = 16                     // notifications and replies that are on their way
	httpRetryLeast = 100 * time.Millisecond // whatever it says
	httpCancelled  = 5 * time.Second        // what a cancelled request gets to end by itself
)

// errSessionLost is why a link ends when the upstream has forgotten it.
var errSessionLost = errors.New("the server has forgotten the session")

func dialHTTP(_ context.Context, c *config.Upstream, o Options, log zerolog.Logger) (link, error) {
	l := newHTTPLink(c, o, log)
	l.running.Go(l.send)
	return l, nil
}

func newHTTPLink(c *config.Upstream, o Options, log zerolog.Logger) *httpLink {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &httpLink{
		config: c, log: log, limit: o.MessageBytes, intake: o.intake, ctx: ctx, cancel: cancel,
		client:   &http.Client{Transport: newTransport(), CheckRedirect: sameHost},
		outgoing: make(chan []byte, httpQueue),
		incoming: make(chan delivery, httpIncoming),
		posts:    map[string]context.CancelFunc{},
	}
}

// Send implements link.
func (l *httpLink) Send(message []byte) error {
	select {
	case <-l.ctx.Done():
		return errOver
	default:
	}
	select {
	case l.outgoing <- message:
		return nil
	default:
		return &failure{reason: "the call was not sent: the server does not take messages"}
	}
}

// Receive implements link. What came before the end is received before it.
func (l *httpLink) Receive() (message, of []byte, err error) {
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
	return d.message, d.of, d.err
}

// Close implements link: the upstream is told, and nothing is left running.
func (l *httpLink) Close() {
	l.mu.Lock()
	reason := cmp.Or(l.failure, &failure{reason: "closed"})
	l.mu.Unlock()
	l.end(reason)
	l.running.Wait()
	l.client.CloseIdleConnections()
}

// end ends the link for a reason; the first counts. It returns when the upstream
// was told.
func (l *httpLink) end(reason error) {
	l.ended.Do(func() {
		l.cancel(reason)
		l.goodbye()
	})
}

// goodbye ends the upstream's session, which it need not allow.
func (l *httpLink) goodbye() {
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
	if answer, err := l.client.Do(r); err == nil {
		_ = answer.Body.Close()
	}
}

func (l *httpLink) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	l.mu.Lock()
	address := cmp.Or(l.endpoint, l.config.URL)
	l.mu.Unlock()
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range l.config.Headers {
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

// setHeader sets a configured header. When a reused connection breaks, net/http
// sends a POST again if it has one of these two headers in their canonical
// spelling. No call may be sent twice, so they are spelled in lower case, which
// means the same to the upstream.
func setHeader(h http.Header, name, value string) {
	switch key := http.CanonicalHeaderKey(name); key {
	case "Idempotency-Key", "X-Idempotency-Key":
		h[strings.ToLower(key)] = []string{value}
	default:
		h.Set(name, value)
	}
}

// get opens a stream of events: what came after the last, if there was one.
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
