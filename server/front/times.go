package front

import (
	"time"

	"mcpx/server"
)

// times are the timeouts and intervals of the HTTP front. None of them ends an idle
// stream.
type times struct {
	header time.Duration // for a client to send the headers of a request
	body   time.Duration // for a client to send a whole request
	idle   time.Duration // between two requests on a connection
	write  time.Duration // for a client to read one write
	alive  time.Duration // between two keep-alive comments on a stream
	drain  time.Duration // for unfinished calls when mcpx stops
	cancel time.Duration // for the responses to calls that are canceled then
}

var defaultTimes = times{
	header: 10 * time.Second,
	body:   time.Minute,
	idle:   2 * time.Minute,
	write:  30 * time.Second,
	alive:  15 * time.Second,
	drain:  server.DrainTime,
	cancel: server.CancelTime,
}
