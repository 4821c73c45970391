package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// errBroken is of an answer that has begun and does not end as it should.
var errBroken = errors.New("the connection broke")

// take reads the messages of an answer to the request with that id, nil for what
// has none. An answer that ends before the request is answered is a broken one.
func (l *httpLink) take(ctx context.Context, answer *http.Response, id []byte) error {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case kind == "text/event-stream":
		return l.follow(ctx, answer.Body, id)
	case answer.StatusCode == http.StatusAccepted, id == nil:
		return nil
	}
	memory := l.intake.reserve(ctx)
	defer memory.release()
	text, err := memory.readAll(answer.Body, l.limit, int(min(answer.ContentLength, int64(l.limit))))
	switch {
	case err != nil:
		return fmt.Errorf("%w: its answer could not be read: %w", errBroken, err)
	case len(text) > l.limit:
		return fmt.Errorf("its answer has more than %d bytes (limits.message_bytes)", l.limit)
	case rawjson.Kind(text) != '{':
		return fmt.Errorf("it answered with %s, which is no message; is this the url of an MCP server?", cmp.Or(kind, "nothing"))
	}
	if own := rawjson.Get(text, "error"); own != nil && rawjson.IsNull(rawjson.Get(text, "id")) {
		text = rawjson.With(text, "id", id) // whose it is shows by what it answers
	}
	l.receive(text, id)
	return nil
}

// receive hands a message to the session, whose memory it is then, with the id of
// the request on whose stream it came. The answer to initialize says which revision
// later requests have to name.
func (l *httpLink) receive(message, of []byte) {
	message = jsonrpc.UTF8(message)
	l.mu.Lock()
	if l.version == "" {
		l.version, _ = rawjson.String(rawjson.Get(rawjson.Get(message, "result"), "protocolVersion"))
	}
	l.mu.Unlock()
	l.deliver(delivery{message: message, of: of})
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

// stand listens to what belongs to no call, for as long as the upstream allows.
func (l *httpLink) stand() {
	at := place{retry: httpRetryTime}
	broke := false
	for before := false; l.ctx.Err() == nil; {
		answer, err := l.get(l.ctx, at.id)
		switch {
		case unreachable(err):
			l.end(&failure{reason: l.config.Redact(plainReason(err)), cause: CauseUnreachable})
			return
		case err != nil:
		case answer.StatusCode == http.StatusOK:
			before = true
			if broke && at.id == "" {
				l.missed()
			}
			broke = false
			err = l.readEvents(l.ctx, answer.Body, &at, func(_ string, data []byte) { l.receive(data, nil) })
		case before && isPassing(answer.StatusCode):
			err = errors.New(answer.Status)
		case before && at.id != "": // it may know no more of that event, or of the session
			l.refused(nil, answer)
			at.id = ""
		default:
			if before {
				l.refused(nil, answer)
			}
			_ = answer.Body.Close()
			return // it has no such stream
		}
		if answer != nil {
			_ = answer.Body.Close()
		}
		wait := min(max(at.retry, httpRetryLeast), resumeLimit)
		if err != nil {
			broke = true
			wait = max(wait, httpRetryTime)
			l.log.Debug().Str("error", l.config.Redact(err.Error())).Msg("its stream broke")
		}
		if errors.Is(err, errTooLong) {
			at.id = "" // what comes after it would be the same again
		}
		l.log.Debug().Msg("the stream has ended; it is opened again")
		select {
		case <-time.After(wait):
		case <-l.ctx.Done():
		}
	}
}

// missed has all lists read again, since nobody told of what changed while the
// stream was broken: a laptop may have slept for hours.
func (l *httpLink) missed() {
	for _, list := range listable {
		l.receive(jsonrpc.AppendNotification(nil, listChanged(list), nil), nil)
	}
}

// isPassing reports whether a status is of a server, or of a proxy before it, that
// is not itself for the moment.
func isPassing(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}
