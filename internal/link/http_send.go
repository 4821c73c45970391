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

// send posts the queued messages. Each request gets a goroutine; notifications and
// responses are posted at most httpNotifications at a time. notifications/initialized must
// have arrived before the next message is posted.
func (l *httpLink) send() {
	slots := make(chan struct{}, httpNotifications)
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
			method, _ := rawjson.String(rawjson.Get(message, "method"))
			if method == "notifications/initialized" {
				l.postNotification(message)
				continue
			}
			if method == "notifications/cancelled" {
				l.endCancelled(message)
			}
			select {
			case slots <- struct{}{}:
			case <-l.ctx.Done():
				return
			}
			l.running.Go(func() {
				defer func() { <-slots }()
				l.postNotification(message)
			})
		case <-l.ctx.Done():
			return
		}
	}
}

// postNotification posts a notification or a response.
func (l *httpLink) postNotification(message []byte) {
	ctx, cancel := context.WithTimeout(l.ctx, httpNotificationTime)
	defer cancel()
	l.post(ctx, message, nil)
}

// begin registers a request until done.
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

// endCancelled ends the request that a notification cancels, if the upstream does
// not end it in time.
func (l *httpLink) endCancelled(message []byte) {
	l.mu.Lock()
	cancel := l.posts[string(rawjson.Get(rawjson.Get(message, "params"), "requestId"))]
	l.mu.Unlock()
	if cancel != nil {
		time.AfterFunc(httpCancelled, cancel)
	}
}

// post posts one message and reads the response. A failure ends the call of a
// request, or the whole link.
func (l *httpLink) post(ctx context.Context, message, id []byte) {
	r, err := l.request(ctx, http.MethodPost, message)
	if err != nil {
		l.fail(id, err)
		return
	}
	if isModernMessage(message) {
		setModernHeaders(r.Header, message)
		l.setParameterHeaders(r.Header, message)
	}
	response, err := l.client.Do(r)
	if err != nil {
		l.postFailed(id, err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case l.speaksSSE(message, response.StatusCode):
		l.fallback = false
		if err := l.openSSE(ctx); err != nil {
			l.refused(id, response)
			return
		}
		l.post(ctx, message, id)
		return
	case response.StatusCode >= 300:
		l.refused(id, response)
		return
	case l.isLegacy():
		return // the GET stream carries the response
	case response.StatusCode == http.StatusAccepted && isDiscover(message):
		l.fail(id, errors.New("HTTP status "+response.Status)) // no stream is open yet that could carry the response
		return
	}
	l.recordHandshake(message, response.Header)
	if err := l.readResponse(ctx, response, id); errors.Is(err, errBroken) {
		l.cutOff(id, err)
	} else if err != nil {
		l.fail(id, err)
	}
}

// isDiscover reports whether a message asks what the upstream supports, which an upstream
// before 2026-07-28 does not know.
func isDiscover(message []byte) bool {
	method, _ := rawjson.String(rawjson.Get(message, "method"))
	return method == "server/discover"
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
	text, _ := io.ReadAll(io.LimitReader(response.Body, httpErrorBody))
	reason := fmt.Sprintf("HTTP status %s", response.Status)
	own := rawjson.Get(text, "error")
	if message, ok := rawjson.String(rawjson.Get(own, "message")); ok {
		reason += ": " + message
	}
	reason = plain.Line(l.redact(reason)) // servers repeat the key that they refuse
	l.mu.Lock()
	inSession := l.session != ""
	l.mu.Unlock()
	denied := l.denied(response, reason)
	switch {
	case inSession && (response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusBadRequest && strings.Contains(strings.ToLower(string(text)), "session")):
		l.end(fmt.Errorf("%w (%s)", errSessionLost, reason))
	case denied != nil:
		l.setFailure(denied)
		l.fail(id, denied)
	case rawjson.Kind(own) == '{' && id != nil:
		l.receive(rpc.AppendError(nil, id, rpc.ParseError(own)), id)
	default:
		outcome := Refused
		if response.StatusCode >= http.StatusInternalServerError {
			outcome = Unknown
		}
		l.endCall(CallEnd{ID: id, Outcome: outcome, Reason: reason})
	}
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
	l.deliver(delivery{err: &e})
}
