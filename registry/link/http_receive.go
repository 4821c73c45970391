package link

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/neterr"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// errBroken marks a response that was cut off.
var errBroken = errors.New("the connection broke")

// readResponse reads the messages in the HTTP response to a POST. id is the ID of the
// posted request, nil for other messages. It returns errBroken if the HTTP response ends
// without the response to the request.
func (l *httpLink) readResponse(ctx context.Context, response *http.Response, id []byte) error {
	switch {
	case hasEvents(response):
		return l.follow(ctx, response.Body, id)
	case response.StatusCode == http.StatusAccepted, id == nil:
		return nil
	}
	memory := l.Intake.reserve(ctx)
	defer memory.release()
	text, err := memory.readAll(response.Body, l.MessageBytes, int(min(response.ContentLength, int64(l.MessageBytes))))
	switch {
	case err != nil:
		return fmt.Errorf("%w: its answer could not be read: %w", errBroken, err)
	case len(text) > l.MessageBytes:
		memory.collect()
		return fmt.Errorf("its answer has more than %d bytes (limits.message_bytes)", l.MessageBytes)
	}
	if text = rpc.WithoutMark(text); rawjson.Kind(text) != '{' {
		kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
		return fmt.Errorf("it answered with %s, which is not a message; is this the url of an MCP server?", cmp.Or(kind, "nothing"))
	}
	if rawjson.IsNull(rawjson.Get(text, "id")) && rawjson.Get(text, "error") != nil {
		text = rawjson.With(text, "id", id) // the response is to this request, so restore its ID
	}
	l.received(rpc.Line{Text: text, Room: memory.pass()}, id)
	return nil
}

// hasEvents reports whether a response is an event stream.
func hasEvents(response *http.Response) bool {
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// received delivers a message with the ID of the request whose stream carried it. If it is
// the response to initialize or server/discover, received records the revision, which later
// requests must name.
func (l *httpLink) received(message rpc.Line, callID []byte) {
	message.Text = rpc.UTF8(message.Text)
	l.mu.Lock()
	if l.version == "" {
		l.version, l.common = negotiated(message.Text), nil
	}
	l.mu.Unlock()
	l.deliver(Delivery{Line: message, CallID: callID})
}

// negotiated returns the revision in the response to initialize or server/discover; "" in
// any other message.
func negotiated(message []byte) string {
	result := rawjson.Get(message, "result")
	for version := range rawjson.Elements(rawjson.Get(result, "supportedVersions")) {
		if string(version) == `"`+mcp.ProtocolVersion20260728+`"` {
			return mcp.ProtocolVersion20260728
		}
	}
	version, _ := rawjson.String(rawjson.Get(result, "protocolVersion"))
	return version
}

// recordHandshake records the session ID in the response to initialize, and opens the GET
// stream after the handshake.
func (l *httpLink) recordHandshake(method string, h http.Header) {
	switch method {
	case "initialize":
		l.mu.Lock()
		defer l.mu.Unlock()
		l.session, l.common = h.Get("Mcp-Session-Id"), nil
	case "notifications/initialized":
		l.stream.Do(func() { l.running.Go(l.readStream) })
	}
}

// readStream reads the GET stream, which carries the messages that belong to no call,
// and opens it again for as long as the upstream allows.
func (l *httpLink) readStream() {
	at := position{retry: httpRetryTime}
	broke := false
	for opened := false; l.ctx.Err() == nil; {
		response, err := l.get(l.ctx, at.id)
		switch {
		case unreachable(err):
			l.end(&Failure{Reason: l.redact(neterr.Reason(err)), Cause: CauseUnreachable})
			return
		case err != nil:
		case response.StatusCode == http.StatusOK && hasEvents(response):
			opened = true
			if broke && at.id == "" {
				l.deliver(Delivery{Err: ErrGap}) // the gap may be hours, if a laptop slept
			}
			broke = false
			err = l.readEvents(l.ctx, response.Body, &at, func(_ string, data rpc.Line) { l.received(data, nil) })
		case opened && (isTemporary(response.StatusCode) || response.StatusCode == http.StatusOK): // 200: the page of a proxy
			err = errors.New(response.Status)
		case opened && at.id != "": // it may have forgotten the event, or the session
			l.refused(nil, response)
			at.id = ""
		default:
			if opened {
				l.refused(nil, response)
			}
			_ = response.Body.Close()
			return // it has no GET stream
		}
		if response != nil {
			_ = response.Body.Close()
		}
		wait := min(max(at.retry, httpRetryLeast), resumeLimit)
		if err != nil {
			broke = true
			wait = max(wait, httpRetryTime)
			l.Log.Debug().Str("error", l.redact(err.Error())).Msg("the GET stream broke")
		}
		if isTooLong(err) {
			at.id = "" // resuming would bring the same event again
		}
		l.Log.Debug().Msg("the GET stream has ended and is opened again")
		select {
		case <-time.After(wait):
		case <-l.ctx.Done():
		}
	}
}

// isTemporary reports whether a status means that the server, or a proxy in front of
// it, may accept the request later.
func isTemporary(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}

// A server may end the stream of a call before the response, so that it need not hold
// the connection while it works. If its events had IDs, the link reads the rest with a
// GET. The call is not sent again.

const (
	resumeTime    = time.Second // before the GET, unless the server sets it
	resumeLimit   = time.Minute // the most that the server can set
	resumeTries   = 3           // in a row without a new event
	afterResponse = time.Second // how long a stream may stay open after the response
)

// position is how far an event stream was read.
type position struct {
	id    string        // of the last event
	retry time.Duration // the pause that the server wants before the next connection
}

// follow reads the stream of a call, and the streams that continue it, until the
// call is done. A nil id means that there is no call.
func (l *httpLink) follow(ctx context.Context, body io.ReadCloser, id []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at := position{retry: resumeTime}
	done := id == nil
	receive := func(_ string, data rpc.Line) {
		if !done && bytes.Equal(rawjson.Get(data.Text, "id"), id) && rawjson.Get(data.Text, "method") == nil {
			done = true
			// When a stream ends, the next call can use its connection. A stream that the server
			// leaves open would hold the connection forever.
			end := time.AfterFunc(afterResponse, func() {
				cancel()
				_ = body.Close()
			})
			context.AfterFunc(ctx, func() { end.Stop() })
		}
		l.received(data, id)
	}
	err := l.readEvents(ctx, body, &at, receive)
	for tries := 0; !done && at.id != "" && tries < resumeTries && !isTooLong(err); tries++ {
		before := at.id
		if err = l.resume(ctx, &at, receive); err != nil {
			break
		}
		if at.id != before {
			tries = 0
		}
	}
	if !done && l.ctx.Err() == nil {
		return fmt.Errorf("%w: its stream ended before the answer came: %w", errBroken, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return nil
}

// resume reads the rest of a stream. It fails if the server does not offer the rest.
func (l *httpLink) resume(ctx context.Context, at *position, receive func(name string, data rpc.Line)) error {
	select {
	case <-time.After(min(at.retry, resumeLimit)):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	response, err := l.get(ctx, at.id)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the rest of it: HTTP status %s", response.Status)
	}
	err = l.readEvents(ctx, response.Body, at, receive)
	if isTooLong(err) {
		return err
	}
	return nil // a connection that breaks again is resumed again
}
