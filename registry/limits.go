package registry

import (
	"sync"
	"time"
)

// limits watches the two limits of a call with one timer: a call without any
// progress, and a call in all.
type limits struct {
	server  string
	request Request
	start   time.Time
	last    time.Time // the last sign of life
	timer   *time.Timer
}

// timers are those that no call uses. A stopped one has nothing in its channel.
var timers = sync.Pool{New: func() any { return time.NewTimer(time.Hour) }}

func newLimits(server string, r Request) limits {
	now := time.Now()
	l := limits{server: server, request: r, start: now, last: now}
	if r.Timeout > 0 || r.MaxTimeout > 0 {
		l.timer = timers.Get().(*time.Timer)
		l.restart()
	}
	return l
}

// C fires when a limit may have been reached.
func (l *limits) C() <-chan time.Time {
	if l.timer == nil {
		return nil
	}
	return l.timer.C
}

func (l *limits) stop() {
	if l.timer != nil {
		l.timer.Stop()
		timers.Put(l.timer)
	}
}

// progress starts the first limit anew.
func (l *limits) progress() {
	l.last = time.Now()
	l.restart()
}

// restart sets the timer to the nearer limit.
func (l *limits) restart() {
	if l.timer != nil {
		l.timer.Reset(l.left())
	}
}

// left is the time until the nearer limit.
func (l *limits) left() time.Duration {
	left := time.Duration(1 << 62)
	if t := l.request.Timeout; t > 0 {
		left = time.Until(l.last.Add(t))
	}
	if t := l.request.MaxTimeout; t > 0 {
		left = min(left, time.Until(l.start.Add(t)))
	}
	return left
}

// over reports whether the call in all has taken too long.
func (l *limits) over() bool {
	return l.request.MaxTimeout > 0 && time.Since(l.start) >= l.request.MaxTimeout
}

// timeout names the limit that was reached.
func (l *limits) timeout() *Timeout {
	if l.over() {
		return &Timeout{Server: l.server, Key: "max_timeout", Limit: l.request.MaxTimeout}
	}
	return &Timeout{Server: l.server, Key: "timeout", Limit: l.request.Timeout}
}
