package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"mcpx/internal/neterr"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// outgoing is a message to post.
type outgoing struct {
	text   []byte
	id     []byte // of a request; nil for other messages
	method string
	after  <-chan struct{} // closed when the message may be posted; nil: at once
}

// wait waits until the message may be posted, or until ctx ends.
func (m *outgoing) wait(ctx context.Context) {
	if m.after == nil {
		return
	}
	select {
	case <-m.after:
	case <-ctx.Done():
	}
}

// Send implements Link. Each message gets a goroutine. Notifications and responses are
// posted at most httpNotifications at a time.
func (l *httpLink) Send(message []byte) error {
	if l.ctx.Err() != nil {
		return rpc.ErrClosed
	}
	method, _ := rawjson.String(rawjson.Get(message, "method"))
	m := outgoing{text: message, method: method}
	if method != "" {
		m.id = rawjson.Get(message, "id")
	}
	if m.id == nil {
		return l.sendOther(m)
	}
	ctx, done, ok := l.begin(&m)
	if !ok {
		return rpc.ErrClosed
	}
	task := func() {
		defer done()
		m.wait(ctx)
		if l.isForgotten() {
			l.endCall(CallEnd{ID: m.id, Outcome: NotSent})
			return
		}
		l.post(ctx, m)
	}
	if !l.start(task) {
		done()
		return rpc.ErrClosed
	}
	return nil
}

// start runs a task in a goroutine of the link. A goroutine that has run one waits for the
// next, because its stack has grown (BenchmarkRemoteSmall). start returns false after Close.
func (l *httpLink) start(task func()) bool {
	select {
	case l.tasks <- task:
		return true
	default:
		return l.running.Go(func() { l.work(task) })
	}
}

// work runs a task. Then it waits for the next one, unless httpIdle goroutines wait already.
func (l *httpLink) work(task func()) {
	for {
		task()
		select {
		case l.idle <- struct{}{}:
		default:
			return
		}
		select {
		case task = <-l.tasks:
			<-l.idle
		case <-l.ctx.Done():
			return
		}
	}
}

// sendOther sends a notification or a response. notifications/initialized must have arrived
// before the next message is posted.
func (l *httpLink) sendOther(m outgoing) error {
	if m.method == "notifications/cancelled" {
		l.endCanceled(m.text)
	}
	l.mu.Lock()
	switch {
	case l.lost != nil:
		l.mu.Unlock()
		return rpc.ErrClosed
	case l.others == httpQueue:
		l.mu.Unlock()
		return &Failure{Reason: "the call was not sent: the server does not accept messages"}
	}
	l.others++
	m.after = l.handshake
	arrived := make(chan struct{})
	if m.method == "notifications/initialized" {
		l.handshake = arrived
	}
	l.mu.Unlock()
	isOpen := l.running.Go(func() {
		defer close(arrived)
		l.postOther(m)
	})
	if !isOpen {
		return rpc.ErrClosed
	}
	return nil
}

// postOther posts a notification or a response when there is a slot for it.
func (l *httpLink) postOther(m outgoing) {
	m.wait(l.ctx) // before it holds a slot that notifications/initialized may need
	select {
	case l.slots <- struct{}{}:
	case <-l.ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, httpNotificationTime)
	l.post(ctx, m)
	cancel()
	<-l.slots
	l.mu.Lock()
	defer l.mu.Unlock()
	l.others--
}

// begin registers a request until done. It returns false if the session is forgotten.
func (l *httpLink) begin(m *outgoing) (ctx context.Context, done func(), ok bool) {
	id := string(m.id)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(l.ctx)
	l.posts[id] = cancel
	m.after = l.handshake
	return ctx, func() {
		cancel()
		l.mu.Lock()
		delete(l.posts, id)
		isLast := l.lost != nil && len(l.posts) == 0
		l.mu.Unlock()
		if isLast {
			l.end(l.lost)
		}
	}, true
}

// forget ends the link, because the upstream has forgotten its session. Requests that were
// posted before get httpForgotten to end by themselves: their responses say whether they were run.
func (l *httpLink) forget(reason string) {
	l.mu.Lock()
	isFirst := l.lost == nil
	if isFirst {
		l.lost = fmt.Errorf("%w (%s)", ErrSessionLost, reason)
	}
	isLast := len(l.posts) == 0
	l.mu.Unlock()
	switch {
	case isLast:
		l.end(l.lost)
	case isFirst:
		time.AfterFunc(httpForgotten, func() { l.end(l.lost) })
	}
}

// isForgotten reports whether the upstream has forgotten the session.
func (l *httpLink) isForgotten() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost != nil
}

// endCanceled ends the request that a notification cancels, if the upstream does
// not end it in time.
func (l *httpLink) endCanceled(message []byte) {
	l.mu.Lock()
	cancel := l.posts[string(rawjson.Get(rawjson.Get(message, "params"), "requestId"))]
	l.mu.Unlock()
	if cancel != nil {
		time.AfterFunc(httpCanceled, cancel)
	}
}

// post posts one message and reads the response. A failure ends the call of a
// request, or the whole link.
func (l *httpLink) post(ctx context.Context, m outgoing) {
	r, err := l.request(ctx, http.MethodPost, m.text)
	if err != nil {
		l.fail(m.id, err)
		return
	}
	if is2026Message(m.text) {
		r.Header = r.Header.Clone()
		set2026Headers(r.Header, m.text)
		l.setParameterHeaders(r.Header, m.text)
	}
	response, err := l.client.Do(r)
	if err != nil {
		l.postFailed(m.id, err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case l.speaksSSE(m, response.StatusCode):
		if err := l.openSSE(ctx); err != nil {
			l.refused(m.id, response)
			return
		}
		l.post(ctx, m)
		return
	case response.StatusCode == http.StatusNotFound && r.Header.Get("Mcp-Session-Id") != "":
		reason := l.statusText(response, errorBody(response))
		l.forget(reason) // first, so that Close reports it to whoever ends the link after the call
		l.endCall(CallEnd{ID: m.id, Outcome: Forgotten, Reason: fmt.Sprintf("%s (%s)", ErrSessionLost, reason)})
		return
	case response.StatusCode >= 300:
		l.refused(m.id, response)
		return
	case l.isLegacy():
		return // the GET stream carries the response
	case response.StatusCode == http.StatusAccepted && m.method == "server/discover":
		// An upstream before 2026-07-28 does not know the method, and no stream is open yet that could carry the response.
		l.fail(m.id, errors.New("HTTP status "+response.Status))
		return
	}
	l.recordHandshake(m.method, response.Header)
	if err := l.readResponse(ctx, response, m.id); errors.Is(err, errBroken) {
		l.cutOff(m.id, err)
	} else if err != nil {
		l.fail(m.id, err)
	}
}

// postFailed handles a POST that got no HTTP response.
func (l *httpLink) postFailed(id []byte, err error) {
	var redirect *redirected
	denied := l.unauthorized(err)
	switch {
	case errors.As(err, &redirect):
		l.fail(id, redirect)
	case denied != nil:
		l.setFailure(denied)
		l.endCall(CallEnd{ID: id, Outcome: Refused, Reason: denied.Reason, Denied: denied})
	case !unreachable(err):
		l.cutOff(id, err)
	default:
		failure := &Failure{Reason: l.redact(neterr.Reason(err)), Cause: CauseUnreachable}
		l.setFailure(failure)
		l.endCall(CallEnd{ID: id, Outcome: NotSent}) // before end, which does not report that the call was not sent
		l.end(failure)
	}
}

// isLegacy reports whether the link uses legacy SSE.
func (l *httpLink) isLegacy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endpoint != ""
}

// refused handles a response with an HTTP error.
func (l *httpLink) refused(id []byte, response *http.Response) {
	text := errorBody(response)
	reason, own := l.statusText(response, text), rawjson.Get(text, "error")
	// A request from before the session says nothing about it.
	inSession := response.Request.Header.Get("Mcp-Session-Id") != ""
	denied := l.denied(response, reason)
	switch {
	case inSession && id == nil && response.StatusCode == http.StatusNotFound:
		l.forget(reason)
	case inSession && response.StatusCode == http.StatusBadRequest && strings.Contains(strings.ToLower(string(text)), "session"):
		l.end(fmt.Errorf("%w (%s)", ErrSessionLost, reason)) // the call may have been run: only a 404 says that it was not
	case denied != nil:
		l.setFailure(denied)
		l.fail(id, denied)
	case rawjson.Kind(own) == '{' && id != nil:
		l.deliver(Delivery{Line: rpc.Line{Text: rpc.AppendError(nil, id, rpc.ParseError(own))}, CallID: id})
	default:
		outcome := Refused
		if response.StatusCode >= http.StatusInternalServerError {
			outcome = Unknown
		}
		l.endCall(CallEnd{ID: id, Outcome: outcome, Reason: reason})
	}
}

// errorBody returns the start of the body of an HTTP error.
func errorBody(response *http.Response) []byte {
	text, _ := io.ReadAll(io.LimitReader(response.Body, httpErrorBody)) // a part of it is enough
	return rpc.WithoutMark(text)
}

// statusText returns the status of an HTTP error, with the message of the JSON-RPC error in
// its body, redacted: servers repeat the key that they refuse.
func (l *httpLink) statusText(response *http.Response, body []byte) string {
	text := "HTTP status " + response.Status
	if message, ok := rawjson.String(rawjson.Get(rawjson.Get(body, "error"), "message")); ok {
		text += ": " + message
	}
	return plain.Line(l.redact(text))
}

// setFailure records why the link cannot be used. Close reports it.
func (l *httpLink) setFailure(f *Failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = f
}

// fail ends a call that got no usable response.
func (l *httpLink) fail(id []byte, err error) {
	l.endCall(CallEnd{ID: id, Outcome: Refused, Reason: l.redact(neterr.Reason(err))})
}

// cutOff ends a call whose connection broke.
func (l *httpLink) cutOff(id []byte, err error) {
	l.endCall(CallEnd{ID: id, Outcome: CutOff, Reason: l.redact(neterr.Reason(err))})
}

// endCall ends one call. Without an ID the message was not a request.
func (l *httpLink) endCall(e CallEnd) {
	if e.ID == nil || l.ctx.Err() != nil {
		l.Log.Debug().Str("reason", e.Reason).Msg("a message could not be sent")
		return
	}
	l.deliver(Delivery{Err: &e})
}
