package logging

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// queue is a writer that never waits: whoever started mcpx may not read its
// stderr, and no call may wait for that. Events that do not fit are dropped, and
// how many is said once there is room again. Those of a moment are written in
// one piece: a write for each would cost more than a relayed call.
type queue struct {
	out    io.Writer
	format format
	wake   chan struct{} // capacity 1
	ending chan struct{} // closed: what waits is written at once
	over   chan struct{} // closed: it is

	mu      sync.Mutex
	events  []byte // each ends with a newline
	dropped int
	closed  bool
}

const (
	queueBytes = 1 << 20                // how much waits at most
	gatherTime = 10 * time.Millisecond  // how long events wait for more
	closeTime  = 500 * time.Millisecond // what those that wait get at the end
)

func newQueue(out io.Writer, f format) *queue {
	q := &queue{out: out, format: f, wake: make(chan struct{}, 1), ending: make(chan struct{}), over: make(chan struct{})}
	go q.run()
	return q
}

// Write implements io.Writer. It takes one event.
func (q *queue) Write(event []byte) (int, error) {
	q.mu.Lock()
	first := len(q.events) == 0
	switch {
	case q.closed:
	case len(q.events)+len(event) > queueBytes:
		q.dropped++
	default:
		q.events = append(q.events, event...)
	}
	q.mu.Unlock()
	if first {
		select {
		case q.wake <- struct{}{}:
		default:
		}
	}
	return len(event), nil
}

func (q *queue) run() {
	defer close(q.over)
	var events, out []byte
	for {
		select {
		case <-q.wake:
			select {
			case <-time.After(gatherTime):
			case <-q.ending:
			}
		case <-q.ending:
		}
		q.mu.Lock()
		events, q.events = q.events, events[:0]
		dropped, closed := q.dropped, q.closed
		q.dropped = 0
		q.mu.Unlock()
		out = out[:0]
		for event := range bytes.Lines(events) {
			out = q.format(out, bytes.TrimSuffix(event, []byte("\n")))
		}
		if dropped > 0 {
			out = fmt.Appendf(out, "(%d lines of the log were dropped: nobody reads them)\n", dropped)
		}
		_, _ = q.out.Write(out) // there is nowhere to report that to
		if closed {
			return
		}
	}
}

// Close writes what waits, if somebody reads it. Later events are lost.
func (q *queue) Close() error {
	q.mu.Lock()
	closed := q.closed
	q.closed = true
	q.mu.Unlock()
	if !closed {
		close(q.ending)
	}
	select {
	case <-q.over:
	case <-time.After(closeTime):
	}
	return nil
}
