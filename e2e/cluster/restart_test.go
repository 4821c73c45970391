//go:build unix

package main

import (
	"syscall"
	"testing"
)

// TestRollingRestart: replicas are stopped and started again one by one under load, and
// nothing is lost: a replica that stops says so at /health, the balancer sends it no more
// requests, and the calls that it has end.
func TestRollingRestart(t *testing.T) {
	server := shared(t)
	server["stop_delay"] = "3s"
	c := startCluster(t, options{server: server})
	l := startLoad(t, c, 100)
	for n := range replicaCount {
		l.waitFor(200)
		r := c.replica(n)
		if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the balancer leaves out "+r.name, func() (string, bool) { return r.health(), !c.balance.isReady(r.name) })
		l.waitFor(50)
		r.waitEnd()
		c.balance.remove(r.name)
		c.start(n)
	}
	l.waitFor(200)
	l.end()
}

// TestKeyRotation: a new key replaces the old one under load, and no session is lost,
// whenever it was opened. First all replicas learn to open what the new key seals, then
// they seal with it. Sessions of the old key end with the key.
func TestKeyRotation(t *testing.T) {
	first, second := newKey(), newKey()
	server := shared(t)
	server["session_key"] = first
	c := startCluster(t, options{server: server})
	before := openClient(t, c)
	l := startLoad(t, c, 100)
	for step, keys := range [][]string{{first, second}, {second, first}} {
		c.setKeys(keys...)
		for n := range replicaCount {
			c.restart(n)
			l.visit(string(rune('a'+step)) + string(rune('0'+n))) // some are opened meanwhile
			l.waitFor(100)
		}
	}
	sessions := map[string]*client{"before": before, "after": openClient(t, c)}
	l.end()
	c.setKeys(second)
	for n := range replicaCount {
		c.restart(n)
		for name, status := range map[string]int{"before": 404, "after": 200} {
			if got := sessions[name].pingAt(c.replica(n).url); got != status {
				t.Errorf("a session that was opened %s the rotation: status %d at a replica with the new key alone, want %d", name, got, status)
			}
		}
	}
}
