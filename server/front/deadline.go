package front

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// slackListener accepts connections on which setting a deadline is cheap. net/http sets
// eight deadlines for each request, and each of them changes a timer of the Go runtime,
// although hardly any of them ever passes (BenchmarkHTTPSmall).
type slackListener struct{ net.Listener }

func (l slackListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newSlackConn(c), nil
}

// slackConn is a connection whose timers may expire too early. Read and Write then set
// them again and go on.
type slackConn struct {
	net.Conn
	read, write deadline
}

func newSlackConn(c net.Conn) *slackConn {
	return &slackConn{Conn: c, read: deadline{set: c.SetReadDeadline}, write: deadline{set: c.SetWriteDeadline}}
}

// CloseWrite closes the sending half. net/http does so before it drops a request that it
// does not read to the end, because otherwise the client might not get the response.
func (c *slackConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

func (c *slackConn) SetReadDeadline(t time.Time) error  { return c.read.change(t) }
func (c *slackConn) SetWriteDeadline(t time.Time) error { return c.write.change(t) }
func (c *slackConn) SetDeadline(t time.Time) error {
	return errors.Join(c.read.change(t), c.write.change(t))
}

func (c *slackConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if n > 0 || err == nil || !c.read.goesOn(err) {
			return n, err
		}
	}
}

func (c *slackConn) Write(b []byte) (written int, err error) {
	for {
		n, err := c.Conn.Write(b[written:])
		written += n
		if err == nil || !c.write.goesOn(err) {
			return written, err
		}
	}
}

// deadline is a deadline of a connection. Its timer never expires later than the deadline.
type deadline struct {
	set func(time.Time) error // sets the timer

	mu    sync.Mutex
	at    time.Time // zero: no deadline
	timer time.Time // when the timer expires or has expired; zero: no timer
}

// timerSlack is how long a timer runs at most. It is not longer than the shortest deadline
// that is set for each request, so that the timer need not be set for that one.
const timerSlack = 10 * time.Second

// change changes the deadline.
func (d *deadline) change(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = t
	if t.IsZero() || !d.timer.IsZero() && !t.Before(d.timer) {
		return nil
	}
	d.timer = t
	return d.set(t)
}

// goesOn reports whether err says only that the timer has expired, but not the deadline. It
// has then set the timer again.
func (d *deadline) goesOn(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	switch {
	case d.at.IsZero():
		d.timer = time.Time{} // none, so that idle streams need no timer
	case !now.Before(d.at):
		return false
	case d.at.Before(now.Add(timerSlack)):
		d.timer = d.at
	default:
		d.timer = now.Add(timerSlack)
	}
	return d.set(d.timer) == nil
}
