package registry

import "time"

// limits watches the two limits of a call with one timer: a call without any
// progress, and a call in all.
type limits struct {
	server  string
	request Request
	start   time.Time
	last    time.Time // the last sign of life
	timer   *time.Timer
}

func newLimits(server string, r Request) *limits {
	now := time.Now()
	l := &limits{server: server, request: r, start: now, last: now}
	if r.Timeout > 0 || r.MaxTimeout > 0 {
		l.timer = time.NewTimer(l.left())
	}
	return l
}

// C fires when a limit is reached, or was before the last progress.
func (l *limits) C() <-chan time.Time {
	if l.timer == nil {
		return nil
	}
	return l.timer.C
}

func (l *limits) stop() {
	if l.timer != nil {
		l.timer.Stop()
	}
}

// progress starts the first limit anew.
func (l *limits) progress() {
	l.last = time.Now()
	if l.timer != nil {
		l.timer.Reset(l.left())
	}
}

// left is the time until the nearer limit.
func (l *limits) left() time.Duration {
	idle, all := time.Duration(1<<62), time.Duration(1<<62)
	if l.request.Timeout > 0 {
		idle = time.Until(l.last.Add(l.request.Timeout))
	}
	if l.request.MaxTimeout > 0 {
		all = time.Until(l.start.Add(l.request.MaxTimeout))
	}
	return min(idle, all)
}

// exceeded names the limit that was reached.
func (l *limits) exceeded() *Timeout {
	if m := l.request.MaxTimeout; m > 0 && time.Since(l.start) >= m {
		return &Timeout{Server: l.server, Key: "max_timeout", Limit: m}
	}
	return &Timeout{Server: l.server, Key: "timeout", Limit: l.request.Timeout}
}
