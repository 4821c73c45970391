package registry

import (
	"math/rand/v2"
	"time"
)

// backoff says how long to wait before an upstream is started again: not at all
// when a healthy one dies, after that 1, 2, 4 … 60 s. A minute of health
// forgives everything.
type backoff struct {
	restarted bool // a death was answered at once
	failures  int
}

const (
	backoffMax   = time.Minute
	backoffReset = time.Minute
)

// next is the wait after a failure of an upstream that was ready for that long,
// 0 if it never was.
func (b *backoff) next(healthy time.Duration) time.Duration {
	if healthy >= backoffReset {
		*b = backoff{}
	}
	if healthy > 0 && !b.restarted {
		b.restarted = true
		return 0
	}
	wait := min(time.Second<<b.failures, backoffMax)
	b.failures = min(b.failures+1, 6)
	return wait - rand.N(wait/5) // so that many do not start in the same moment
}
