package logging

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"mcpx/internal/tasks"
)

// queue is a writer that never waits: whoever started mcpx may not read its stderr,
// and no call may wait for that. Events that do not fit are dropped and counted.
//
// zerolog's diode would do the same, but it reports collisions with the standard
// logger, which waits for stderr, it can miss a wake-up, and it writes every line on
// its own.
type queue struct {
	out    io.Writer
	format format
	wake   tasks.Signal
	ending chan struct{} // closed by the first close
	over   chan struct{} // closed when everything is written

	mu      sync.Mutex
	events  []byte // each ends with a newline
	dropped int
	closed  bool

	workMu  sync.Mutex
	work    []func()   // see Log.Later
	working sync.Mutex // held by the goroutine that runs work, so that it runs in order

	spare, lines []byte // reused by flush
}

const (
	queueBytes = 1 << 20                // how much waits at most
	queueWork  = 4096                   // how many functions wait at most
	gatherTime = 10 * time.Millisecond  // how long both wait for more
	closeTime  = 500 * time.Millisecond // how long close waits for a reader
)

// newQueue starts the goroutine that writes; close ends it.
func newQueue(out io.Writer, f format) *queue {
	q := &queue{out: out, format: f, wake: tasks.NewSignal(), ending: make(chan struct{}), over: make(chan struct{})}
	go q.run()
	return q
}

// Write implements io.Writer. It takes one event.
func (q *queue) Write(event []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
	case len(q.events)+len(event) > queueBytes:
		q.dropped++
	default:
		if len(q.events) == 0 {
			q.wake.Notify()
		}
		q.events = append(q.events, event...)
	}
	return len(event), nil
}

// later queues a function. If too many wait, the caller runs them.
func (q *queue) later(f func()) {
	q.workMu.Lock()
	q.work = append(q.work, f)
	n := len(q.work)
	q.workMu.Unlock()
	switch n {
	case 1:
		q.wake.Notify()
	case queueWork:
		q.runLater()
	}
}

// runLater runs the functions that wait.
func (q *queue) runLater() {
	q.working.Lock()
	defer q.working.Unlock()
	q.workMu.Lock()
	work := q.work
	q.work = nil
	q.workMu.Unlock()
	for _, f := range work {
		f()
	}
}

func (q *queue) run() {
	defer close(q.over)
	for closed := false; !closed; {
		select {
		case <-q.wake:
			select {
			case <-time.After(gatherTime):
			case <-q.ending:
			}
		case <-q.ending:
		}
		q.runLater()
		closed = q.flush()
	}
}

// flush writes the events that wait in one piece: one write for each would cost more
// than a relayed call. It reports whether the queue is closed.
func (q *queue) flush() (closed bool) {
	q.mu.Lock()
	events, dropped, closed := q.events, q.dropped, q.closed
	q.events, q.dropped = q.spare[:0], 0
	q.mu.Unlock()
	q.spare, q.lines = events, q.lines[:0]
	for event := range bytes.Lines(events) {
		q.lines = q.format(q.lines, bytes.TrimSuffix(event, []byte("\n")))
	}
	if dropped > 0 {
		q.lines = fmt.Appendf(q.lines, "(%d lines of the log were dropped: nobody reads them)\n", dropped)
	}
	if len(q.lines) > 0 {
		_, _ = q.out.Write(q.lines) // there is nowhere to report an error
	}
	return closed
}

// close writes what waits. Later events are lost. It reports whether all was written in
// time, that is, whether somebody reads the log.
func (q *queue) close() bool {
	q.runLater()
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.ending)
	}
	q.mu.Unlock()
	select {
	case <-q.over:
		return true
	case <-time.After(closeTime):
		return false
	}
}
