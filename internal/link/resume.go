package link

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"mcpx/internal/rawjson"
)

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
	receive := func(_ string, data []byte) {
		if !done && bytes.Equal(rawjson.Get(data, "id"), id) && rawjson.Get(data, "method") == nil {
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
func (l *httpLink) resume(ctx context.Context, at *position, receive func(name string, data []byte)) error {
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
