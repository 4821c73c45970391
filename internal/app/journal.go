package app

import (
	"context"
	"sync"
	"time"

	"mcpx/executor"
)

// journal takes note of calls without holding them up: what is to be logged and
// counted of a moment is written down together, by a goroutine of its own.
type journal struct {
	write func(e executor.Event)
	wake  chan struct{} // capacity 1

	mu      sync.Mutex
	events  []executor.Event
	writing sync.Mutex // held by who writes, so that it is done in order
}

const (
	journalTime = 10 * time.Millisecond // how long events wait for more
	journalSize = 4096                  // how many wait; the next call writes them itself
)

func newJournal(write func(e executor.Event)) *journal {
	return &journal{write: write, wake: make(chan struct{}, 1)}
}

// note takes an event.
func (j *journal) note(e executor.Event) {
	j.mu.Lock()
	j.events = append(j.events, e)
	n := len(j.events)
	j.mu.Unlock()
	switch n {
	case 1:
		select {
		case j.wake <- struct{}{}:
		default:
		}
	case journalSize:
		j.flush()
	}
}

// flush writes down what waits.
func (j *journal) flush() {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	events := j.events
	j.events = nil
	j.mu.Unlock()
	for _, e := range events {
		j.write(e)
	}
}

// run writes until ctx ends, and then the rest.
func (j *journal) run(ctx context.Context) {
	defer j.flush()
	for {
		select {
		case <-j.wake:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(journalTime):
		case <-ctx.Done():
			return
		}
		j.flush()
	}
}
