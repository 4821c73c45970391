package registry

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"mcpx/internal/rawjson"
)

// A server may end the stream of a call before the answer is there, so that no
// connection is held while it works. If its events had ids, the rest can be had:
// nothing is sent twice by asking for it.

const (
	resumeTime  = time.Second // before the rest is asked for, if the server does not say
	resumeLimit = time.Minute // the longest that it may say
	resumeTries = 3           // in a row that bring nothing
	afterAnswer = time.Second // what a stream gets to end by itself once the call is answered
)

// place is where in a stream of events its reader is.
type place struct {
	id    string        // of the last event
	retry time.Duration // what the server wants to be left alone for
}

// follow takes the messages of a call's stream, and of those that go on with it,
// until the call is answered; a nil id is of what has no answer.
func (l *httpLink) follow(ctx context.Context, body io.ReadCloser, id []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at := place{retry: resumeTime}
	answered := id == nil
	hear := func(_ string, data []byte) {
		if !answered && bytes.Equal(rawjson.Get(data, "id"), id) && rawjson.Get(data, "method") == nil {
			answered = true
			// One that ends leaves a connection for the next call; one that does not would hold it for ever.
			end := time.AfterFunc(afterAnswer, func() {
				cancel()
				_ = body.Close()
			})
			context.AfterFunc(ctx, func() { end.Stop() })
		}
		l.receive(data, id)
	}
	err := l.readEvents(ctx, body, &at, hear)
	for tries := 0; !answered && at.id != "" && tries < resumeTries && !errors.Is(err, errTooLong); tries++ {
		before := at.id
		if err = l.resume(ctx, &at, hear); err != nil {
			break
		}
		if at.id != before {
			tries = 0
		}
	}
	if !answered && l.ctx.Err() == nil {
		return fmt.Errorf("%w: its stream ended before the answer came: %w", errBroken, cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return nil
}

// resume asks for the rest of a stream, and reads it. It fails if there is none.
func (l *httpLink) resume(ctx context.Context, at *place, hear func(name string, data []byte)) error {
	wait := time.NewTimer(min(at.retry, resumeLimit))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	answer, err := l.get(ctx, at.id)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the rest of it: HTTP status %s", answer.Status)
	}
	err = l.readEvents(ctx, answer.Body, at, hear)
	if errors.Is(err, errTooLong) {
		return err
	}
	return nil // a connection that breaks again is asked for again
}
