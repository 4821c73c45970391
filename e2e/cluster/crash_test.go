//go:build unix

package main

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// The crashes of TestCrashes.
const (
	crashes       = 4
	crashInterval = 5 * time.Second
)

// TestCrashes: a thousand client sessions make calls while one replica after the other is
// killed. Every session goes on, and so do its kept results. Only the calls that the dead
// replica had fail, with an error that says so, and no call is made twice.
func TestCrashes(t *testing.T) {
	c := startCluster(t, options{server: shared(t)})
	l := startLoad(t, c, 1000)
	interval := time.NewTicker(crashInterval)
	defer interval.Stop()
	for n := range crashes {
		<-interval.C
		victim := c.replica(n % replicaCount)
		nonce, failed := fmt.Sprint("held-", n), make(chan error, 1)
		v := l.any()
		go func() {
			_, err := v.execAt(victim.url, "count", "work", fmt.Sprintf(`{"nonce":%q,"ms":3600000}`, nonce))
			failed <- err
		}()
		c.waitForCall(nonce)
		c.kill(n % replicaCount)
		var cut clearError
		if err := <-failed; !errors.As(err, &cut) && !isConnectionError(err) {
			t.Errorf("the call that the dead replica had: %v, want an error of its connection", err)
		}
		if times := c.calls()[nonce]; times != 1 {
			t.Errorf("the upstream got the call %s %d times, want once", nonce, times)
		}
	}
	l.waitFor(1000)
	l.end()
}
