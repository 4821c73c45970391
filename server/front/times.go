package front

import "time"

// times are what the HTTP front gives a client for its part. None of them ends a
// stream on which nothing happens.
type times struct {
	header time.Duration // to send the header of a request
	body   time.Duration // to send all of it
	idle   time.Duration // until the next request on the connection
	write  time.Duration // to take what is written
	alive  time.Duration // between signs of life on a stream
	drain  time.Duration // for calls in flight at the end
	last   time.Duration // for the answers of those that are cancelled then
}

var usualTimes = times{
	header: 10 * time.Second,
	body:   time.Minute,
	idle:   2 * time.Minute,
	write:  30 * time.Second,
	alive:  15 * time.Second,
	drain:  drainTime,
	last:   lastTime,
}
