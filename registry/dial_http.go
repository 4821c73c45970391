package registry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
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

	fallback bool // it may turn out to speak the older transport

	ctx      context.Context
	cancel   context.CancelCauseFunc
	outgoing chan []byte
	incoming chan delivery
	running  sync.WaitGroup
	listen   sync.Once

	mu       sync.Mutex
	endpoint string                        // of the older transport: where to post; empty otherwise
	session  string                        // the id the upstream gave
	version  string                        // the revision that was agreed on
	cause    Cause                         // why it refuses to talk, if it does
	posts    map[string]context.CancelFunc // requests that are not answered, by id
}

// delivery is what Receive returns: a message, or the end of one call.
type delivery struct {
	message []byte
	err     error
}

// What a connection to a remote upstream gets.
const (
	httpQueue     = 1024 // messages that wait to be sent
	httpPool      = 100  // idle connections to one upstream
	httpNoteTime  = 30 * time.Second
	httpRetryTime = 5 * time.Second // between attempts to listen
	httpErrorBody = 1 << 10
	httpCancelled = 5 * time.Second // what a cancelled request gets to end by itself
)

// errBroken is of an answer that has begun and does not end as it should.
var errBroken = errors.New("the connection broke")

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
		config: c, log: log, limit: o.MessageBytes, ctx: ctx, cancel: cancel,
		client:   &http.Client{Transport: newTransport(), CheckRedirect: sameHost},
		outgoing: make(chan []byte, httpQueue),
		incoming: make(chan delivery, httpQueue),
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

// Receive implements link.
func (l *httpLink) Receive() ([]byte, error) {
	select {
	case d := <-l.incoming:
		return d.message, d.err
	default:
	}
	select {
	case d := <-l.incoming:
		return d.message, d.err
	case <-l.ctx.Done():
		return nil, context.Cause(l.ctx)
	}
}

// Close implements link: the upstream is told, and nothing is left running.
func (l *httpLink) Close() {
	l.mu.Lock()
	cause := l.cause
	l.mu.Unlock()
	l.end(&failure{reason: "closed", cause: cause})
	l.running.Wait()
	l.client.CloseIdleConnections()
}

// end ends the link for a reason; the first counts.
func (l *httpLink) end(reason error) {
	if l.ctx.Err() != nil {
		return
	}
	l.cancel(reason)
	l.goodbye()
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

// send posts the messages in turn. Requests are answered side by side; a
// notification has arrived before the message after it goes.
func (l *httpLink) send() {
	for {
		select {
		case message := <-l.outgoing:
			id := rawjson.Get(message, "id")
			if id != nil && rawjson.Get(message, "method") != nil {
				ctx, done := l.begin(id)
				l.running.Go(func() {
					defer done()
					l.post(ctx, message, id)
				})
				continue
			}
			ctx, cancel := context.WithTimeout(l.ctx, httpNoteTime)
			l.post(ctx, message, nil)
			cancel()
			l.cancelled(message)
		case <-l.ctx.Done():
			return
		}
	}
}

// begin notes a request that is on its way.
func (l *httpLink) begin(id []byte) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(l.ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.posts[string(id)] = cancel
	return ctx, func() {
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.posts, string(id))
	}
}

// cancelled ends the request that a notification cancels, if the upstream does
// not: some never answer it.
func (l *httpLink) cancelled(message []byte) {
	if method, _ := rawjson.String(rawjson.Get(message, "method")); method != "notifications/cancelled" {
		return
	}
	l.mu.Lock()
	cancel := l.posts[string(rawjson.Get(rawjson.Get(message, "params"), "requestId"))]
	l.mu.Unlock()
	if cancel != nil {
		time.AfterFunc(httpCancelled, cancel)
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
		r.Header.Set(name, value)
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

// post sends one message and takes what comes back. A request that fails is
// answered for, unless the failure is the link's end.
func (l *httpLink) post(ctx context.Context, message, id []byte) {
	r, err := l.request(ctx, http.MethodPost, message)
	if err != nil {
		l.fail(id, err)
		return
	}
	if isModernMessage(message) {
		setModernHeaders(r.Header, message)
	}
	answer, err := l.client.Do(r)
	if err != nil {
		reason, isUnsent := l.config.Redact(err.Error()), unreachable(err)
		if isUnsent {
			l.note(CauseUnreachable)
		}
		l.lose(id, reason, isUnsent)
		if isUnsent {
			l.end(&failure{reason: reason, cause: CauseUnreachable})
		}
		return
	}
	defer func() { _ = answer.Body.Close() }()
	switch {
	case l.speaksSSE(message, answer.StatusCode):
		l.fallback = false
		if err := l.openSSE(ctx); err != nil {
			l.refused(id, answer)
			return
		}
		l.post(ctx, message, id)
		return
	case answer.StatusCode >= 300:
		l.refused(id, answer)
		return
	case l.older():
		return // the answer comes on the stream
	}
	l.greeted(message, answer.Header)
	if err := l.take(ctx, answer, message); errors.Is(err, errBroken) {
		l.lose(id, l.config.Redact(err.Error()), false)
	} else if err != nil {
		l.fail(id, err)
	}
}

// older reports whether the link speaks the older transport.
func (l *httpLink) older() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endpoint != ""
}

// take reads the messages of an answer. An answer that ends before the request
// is answered is a broken one.
func (l *httpLink) take(ctx context.Context, answer *http.Response, message []byte) error {
	id := rawjson.Get(message, "id")
	body := io.LimitReader(answer.Body, int64(l.limit)+1)
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream":
		return l.follow(ctx, answer.Body, id)
	case answer.StatusCode == http.StatusAccepted, id == nil:
		return nil
	}
	text, err := io.ReadAll(body)
	switch {
	case err != nil:
		return fmt.Errorf("%w: its answer could not be read: %w", errBroken, err)
	case len(text) > l.limit:
		return fmt.Errorf("its answer has more than %d bytes (limits.message_bytes)", l.limit)
	case rawjson.Kind(text) != '{':
		return fmt.Errorf("it answered with %s, which is no message; is this the url of an MCP server?", cmp.Or(kind, "nothing"))
	}
	l.receive(text)
	return nil
}

// receive hands a message to the session. The answer to initialize says which
// revision later requests have to name.
func (l *httpLink) receive(message []byte) {
	l.mu.Lock()
	if l.version == "" {
		l.version, _ = rawjson.String(rawjson.Get(rawjson.Get(message, "result"), "protocolVersion"))
	}
	l.mu.Unlock()
	l.deliver(delivery{message: bytes.Clone(message)})
}

func (l *httpLink) deliver(d delivery) {
	select {
	case l.incoming <- d:
	case <-l.ctx.Done():
	}
}

// greeted notes the session that the answer to initialize gives. Once the
// handshake is over, mcpx listens.
func (l *httpLink) greeted(message []byte, h http.Header) {
	method, _ := rawjson.String(rawjson.Get(message, "method"))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch method {
	case "initialize":
		l.session = h.Get("Mcp-Session-Id")
	case "notifications/initialized":
		l.listen.Do(func() { l.running.Go(l.stand) })
	}
}

// refused takes an answer that is an HTTP error.
func (l *httpLink) refused(id []byte, answer *http.Response) {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, httpErrorBody))
	reason := fmt.Sprintf("HTTP status %s", answer.Status)
	if message, ok := rawjson.String(rawjson.Get(rawjson.Get(text, "error"), "message")); ok {
		reason += ": " + message
	}
	reason = plain.Line(l.config.Redact(reason)) // servers repeat the key that they refuse
	l.mu.Lock()
	inSession := l.session != ""
	l.mu.Unlock()
	switch {
	case inSession && (answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusBadRequest && strings.Contains(strings.ToLower(string(text)), "session")):
		l.end(fmt.Errorf("%w (%s)", errSessionLost, reason))
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden:
		l.note(CauseAuth)
		l.fail(id, fmt.Errorf("authentication failed: %s; check its headers", reason))
	default:
		l.fail(id, errors.New(reason))
	}
}

// note keeps the kind of a failure for those who close the link because of it.
func (l *httpLink) note(cause Cause) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = cause
}

// fail answers a request that the upstream could not be asked.
func (l *httpLink) fail(id []byte, err error) {
	text := l.config.Redact(err.Error())
	if id == nil || l.ctx.Err() != nil {
		l.log.Debug().Str("error", text).Msg("a message could not be sent")
		return
	}
	l.receive(jsonrpc.AppendError(nil, id, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: text}))
}

// lose ends a request whose connection broke. Others are not concerned.
func (l *httpLink) lose(id []byte, reason string, isUnsent bool) {
	if id == nil || l.ctx.Err() != nil {
		l.log.Debug().Str("error", reason).Msg("a message could not be sent")
		return
	}
	l.deliver(delivery{err: &brokenCall{id: id, reason: reason, isUnsent: isUnsent}})
}

// stand listens to what belongs to no call, for as long as the upstream allows.
func (l *httpLink) stand() {
	for before := false; l.ctx.Err() == nil; {
		r, err := l.request(l.ctx, http.MethodGet, nil)
		if err != nil {
			return
		}
		r.Header.Set("Accept", "text/event-stream")
		answer, err := l.client.Do(r)
		if err == nil {
			if answer.StatusCode != http.StatusOK {
				if before { // it had one, so it may have forgotten the session
					l.refused(nil, answer)
				}
				_ = answer.Body.Close()
				return // it has no such stream
			}
			before = true
			err = readEvents(answer.Body, l.limit, &place{}, func(_ string, data []byte) { l.receive(data) })
			_ = answer.Body.Close()
		}
		if unreachable(err) {
			l.end(&failure{reason: l.config.Redact(err.Error())})
			return
		}
		if err != nil {
			l.log.Debug().Str("error", l.config.Redact(err.Error())).Msg("its stream broke")
		}
		l.log.Debug().Msg("the stream has ended; it is opened again")
		select {
		case <-time.After(httpRetryTime):
		case <-l.ctx.Done():
		}
	}
}
