package executor

import (
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/logging"
	"mcpx/registry/upstream"
)

// Observer gets the event of each call when the call has ended. It is called before the
// client gets the result, concurrently, and must not wait.
type Observer func(e Event)

// Observers are called in order.
type Observers []Observer

// Event reports the end of a call, or of another request to an upstream.
type Event struct {
	Profile, Client, Request, Server, Tool string

	Caller            string // the name of the caller; empty for one without a name
	Program           upstream.Program
	Method            string // of a request that is not a call; empty for a call
	Arguments         []byte // as the client sent them; valid until the observer returns
	Outcome           string // "ok" or the kind of failure
	Took              time.Duration
	BytesIn, BytesOut int
}

// Observe calls the observers. A panic of one is logged, and affects neither the caller nor
// the other observers.
func (list Observers) Observe(e Event, log *zerolog.Logger) {
	for _, observer := range list {
		observer.observe(e, log)
	}
}

func (o Observer) observe(e Event, log *zerolog.Logger) {
	defer func() {
		if p := recover(); p != nil {
			logging.Panic(log.Error().Str("server", e.Server).Str("tool", e.Tool), p).Msg("panic in an observer of calls")
		}
	}()
	o(e)
}

// observe passes the event of a call to the observers.
func (e *Executor) observe(event Event) {
	event.Profile = e.settings.Load().profile.Name
	e.observers.Observe(event, &e.log)
}
