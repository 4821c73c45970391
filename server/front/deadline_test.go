package front

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// slackPipe returns a slackConn, its other end, and a counter of the timers that were set
// for reading.
func slackPipe() (c *slackConn, other net.Conn, timers *int) {
	near, far := net.Pipe()
	timers = new(int)
	c = newSlackConn(near)
	set := c.read.set
	c.read.set = func(t time.Time) error {
		*timers++
		return set(t)
	}
	return c, far, timers
}

// TestSlackDeadline: a read ends exactly at its deadline, whatever deadlines there were
// before, and one without a deadline never ends by itself.
func TestSlackDeadline(t *testing.T) {
	for name, deadlines := range map[string][]time.Duration{
		"one":                {time.Minute},
		"shorter than slack": {timerSlack / 10},
		"then later":         {time.Second, time.Minute},
		"then earlier":       {time.Minute, time.Second},
		"none in between":    {time.Second, 0, time.Minute},
		"past in between":    {time.Second, -time.Second, time.Minute},
		"past":               {-time.Second},
		"none at last":       {time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, other, timers := slackPipe()
				start := time.Now()
				var last time.Duration
				for _, last = range deadlines {
					at := time.Time{}
					if last != 0 {
						at = start.Add(last)
					}
					if err := c.SetReadDeadline(at); err != nil {
						t.Fatal(err)
					}
				}
				if last == 0 {
					time.AfterFunc(time.Hour, func() { _ = other.Close() })
					if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(start) != time.Hour {
						t.Errorf("the read ended with %v after %s", err, time.Since(start))
					}
					if *timers > 2 {
						t.Errorf("%d timers were set for a read without a deadline", *timers)
					}
					return
				}
				_, err := c.Read(make([]byte, 1))
				if took := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || took != max(last, 0) {
					t.Errorf("the read ended with %v after %s, want a timeout after %s", err, took, last)
				}
			})
		})
	}
}

// TestSlackDeadlineEndsRead: a deadline also ends a read that has begun.
func TestSlackDeadlineEndsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := slackPipe()
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		ended := make(chan error)
		go func() {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		start := time.Now()
		_ = c.SetReadDeadline(start.Add(-time.Second)) // as net/http does when a handler returns
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != 0 {
			t.Errorf("the read ended with %v after %s", err, time.Since(start))
		}
	})
}

// TestSlackDeadlineWrite: what a client reads slowly arrives whole, although timers expire
// in between, and a write ends at its deadline.
func TestSlackDeadlineWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, other, _ := slackPipe()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_ = c.SetDeadline(time.Now().Add(time.Hour))
		got := make(chan string)
		go func() {
			text := ""
			for b := make([]byte, 1); len(text) < 4; text += string(b) {
				time.Sleep(2 * timerSlack)
				_, _ = io.ReadFull(other, b)
			}
			got <- text
		}()
		if n, err := c.Write([]byte("slow")); n != 4 || err != nil {
			t.Errorf("wrote %d bytes: %v", n, err)
		}
		if text := <-got; text != "slow" {
			t.Errorf("the client read %q", text)
		}
		_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
		if n, err := c.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d bytes that nobody reads: %v", n, err)
		}
	})
}

// TestSlackDeadlineTimers: the deadlines of many requests need one timer.
func TestSlackDeadlineTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, timers := slackPipe()
		for range 100 {
			for _, d := range []time.Duration{defaultTimes.header, defaultTimes.body, defaultTimes.idle} {
				_ = c.SetReadDeadline(time.Now().Add(d))
			}
			_ = c.SetReadDeadline(time.Time{})
			time.Sleep(time.Second)
		}
		if *timers != 1 {
			t.Errorf("%d timers were set", *timers)
		}
	})
}
