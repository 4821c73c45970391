package logging

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// queue is a writer that never waits: whoever started mcpx may not read its
// stderr, and no call may wait for that. Lines that do not fit are dropped, and
// how many is said once there is room again.
type queue struct {
	out     io.Writer
	lines   chan []byte
	written chan struct{}
	dropped atomic.Int64
}

// queueLines is how many lines wait at most.
const queueLines = 4096

// closeTime is what the lines that wait get to be written at the end.
const closeTime = 500 * time.Millisecond

func newQueue(out io.Writer) *queue {
	q := &queue{out: out, lines: make(chan []byte, queueLines), written: make(chan struct{})}
	go q.run()
	return q
}

// Write implements io.Writer.
func (q *queue) Write(line []byte) (int, error) {
	select {
	case q.lines <- append([]byte(nil), line...):
	default:
		q.dropped.Add(1)
	}
	return len(line), nil
}

func (q *queue) run() {
	defer close(q.written)
	for line := range q.lines {
		if line == nil {
			return
		}
		if n := q.dropped.Swap(0); n > 0 {
			_, _ = fmt.Fprintf(q.out, "(%d lines of the log were dropped: nobody reads them)\n", n)
		}
		_, _ = q.out.Write(line) // there is nowhere to report that to
	}
}

// Close writes what waits, if somebody reads it. Later lines are lost.
func (q *queue) Close() error {
	select {
	case q.lines <- nil:
	default:
		return nil
	}
	select {
	case <-q.written:
	case <-time.After(closeTime):
	}
	return nil
}
