package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// send posts the messages. Requests are answered side by side; notifications and
// replies wait for each other only where there are many, but for that which ends
// the handshake: it has arrived before the message after it goes.
func (l *httpLink) send() {
	notes := make(chan struct{}, httpNotes)
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
				l.tell(message)
				continue
			}
			if method == "notifications/cancelled" {
				l.cancelled(message)
			}
			select {
			case notes <- struct{}{}:
			case <-l.ctx.Done():
				return
			}
			l.running.Go(func() {
				defer func() { <-notes }()
				l.tell(message)
			})
		case <-l.ctx.Done():
			return
		}
	}
}

// tell posts what has no answer.
func (l *httpLink) tell(message []byte) {
	ctx, cancel := context.WithTimeout(l.ctx, httpNoteTime)
	defer cancel()
	l.post(ctx, message, nil)
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
	l.mu.Lock()
	cancel := l.posts[string(rawjson.Get(rawjson.Get(message, "params"), "requestId"))]
	l.mu.Unlock()
	if cancel != nil {
		time.AfterFunc(httpCancelled, cancel)
	}
}

// post sends one message and takes what comes back. A request that fails ends its
// call, unless the failure is the link's end.
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
		var away *redirected
		if errors.As(err, &away) {
			l.fail(id, away)
			return
		}
		if !unreachable(err) {
			l.lose(id, err)
			return
		}
		gone := &failure{reason: l.config.Redact(plainReason(err)), cause: CauseUnreachable}
		l.note(gone)
		l.endCall(id, errOver) // before the end, which cannot tell that it was not sent
		l.end(gone)
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
	if err := l.take(ctx, answer, id); errors.Is(err, errBroken) {
		l.lose(id, err)
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

// refused takes an answer that is an HTTP error.
func (l *httpLink) refused(id []byte, answer *http.Response) {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, httpErrorBody))
	reason := fmt.Sprintf("HTTP status %s", answer.Status)
	own := rawjson.Get(text, "error")
	if message, ok := rawjson.String(rawjson.Get(own, "message")); ok {
		reason += ": " + message
	}
	reason = plain.Line(l.config.Redact(reason)) // servers repeat the key that they refuse
	l.mu.Lock()
	inSession := l.session != ""
	l.mu.Unlock()
	denied := l.denied(answer, reason)
	switch {
	case inSession && (answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusBadRequest && strings.Contains(strings.ToLower(string(text)), "session")):
		l.end(fmt.Errorf("%w (%s)", errSessionLost, reason))
	case denied != nil:
		l.note(denied)
		l.fail(id, denied)
	case rawjson.Kind(own) == '{' && id != nil:
		l.receive(jsonrpc.AppendError(nil, id, jsonrpc.ParseError(own)), id)
	default:
		l.endCall(id, &Unanswered{Server: l.config.Name, Reason: reason, Unknown: answer.StatusCode >= http.StatusInternalServerError})
	}
}

// note keeps a failure for those who close the link because of it.
func (l *httpLink) note(f *failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = f
}

// fail ends a call that got no usable answer.
func (l *httpLink) fail(id []byte, err error) {
	l.endCall(id, &Unanswered{Server: l.config.Name, Reason: l.config.Redact(plainReason(err))})
}

// lose ends a call whose connection broke.
func (l *httpLink) lose(id []byte, err error) {
	l.endCall(id, &Lost{Server: l.config.Name, Reason: l.config.Redact(plainReason(err))})
}

// endCall ends one call; a nil id means that the message was not a request.
func (l *httpLink) endCall(id []byte, err error) {
	if id == nil || l.ctx.Err() != nil {
		l.log.Debug().Err(err).Msg("a message could not be sent")
		return
	}
	l.deliver(delivery{err: &endedCall{id, err}})
}
