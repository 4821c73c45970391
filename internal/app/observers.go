package app

import (
	"sync"
	"time"

	"mcpx/executor"
)

// observers returns what gets the event of each call.
func (a *App) observers() executor.Observers {
	return executor.Observers{a.audit.Observe, a.later(a.noteUse, a.countCall, a.logCall)}
}

// later returns an Observer that calls others soon after the call, in the goroutine of the
// log. In the path of the call they made small calls over HTTP 1 to 5 % slower.
func (a *App) later(observers ...executor.Observer) executor.Observer {
	type task struct {
		event executor.Event
		run   func()
	}
	var tasks sync.Pool // those that have run: with them a call takes no memory here (BenchmarkLater)
	return func(e executor.Event) {
		t, _ := tasks.Get().(*task)
		if t == nil {
			t = &task{}
			t.run = func() {
				executor.Observers(observers).Observe(t.event, &a.log.Logger)
				t.event = executor.Event{}
				tasks.Put(t)
			}
		}
		t.event = e
		t.event.Arguments = nil // they would stay in memory
		a.log.Later(t.run)
	}
}

// noteUse makes sure that memory is released soon.
func (a *App) noteUse(executor.Event) { a.memory.releaseSoon() }

// countCall counts a call for /metrics.
func (a *App) countCall(e executor.Event) {
	if a.metrics != nil {
		a.metrics.Observe(e)
	}
}

// logCall logs a call.
func (a *App) logCall(e executor.Event) {
	line := a.log.Info()
	if len(a.Profiles()) > 1 {
		line.Str("schema", e.Profile)
	}
	line.Str("client", e.Client).Str("request", e.Request).Str("server", e.Server).Str("tool", e.Tool).Str("outcome", e.Outcome).
		Dur("ms", e.Took.Round(10*time.Microsecond)).Int("in", e.BytesIn).Int("out", e.BytesOut).Msg("call")
}
