//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/parts/replicas/storetest"
)

// replicaCount is the number of replicas in every test.
const replicaCount = 3

// cluster is three replicas with one config, behind a balancer.
type cluster struct {
	t       *testing.T
	url     string // of the balancer, without a path
	balance *balancer
	http    *http.Client
	env     []string
	record  string // where the upstream "count" records its calls

	visitors atomic.Int64 // of all loads

	mu       sync.Mutex
	config   string              // path
	replicas []*replica          // the current ones
	all      map[string]*replica // every run, by name
}

// options are the settings of a cluster.
type options struct {
	server    map[string]any // of the config
	upstreams map[string]any // in addition to "count"
}

// newKey returns a value for server.session_key.
func newKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return base64.StdEncoding.EncodeToString(key)
}

// startCluster starts the replicas and the balancer. All replicas use the upstream
// "count", one process that serves HTTP and records every call.
func startCluster(t *testing.T, o options) *cluster {
	t.Helper()
	home := "HOME=" + t.TempDir() // identifies the processes of this cluster
	mcptest.NoneLeft(t, home)
	c := &cluster{
		t: t, balance: newBalancer(), record: filepath.Join(t.TempDir(), "calls"), all: map[string]*replica{},
		env:  []string{home, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"},
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
	}
	t.Cleanup(c.http.CloseIdleConnections)
	upstreams := maps.Clone(o.upstreams)
	if upstreams == nil {
		upstreams = map[string]any{}
	}
	upstreams["count"] = map[string]any{"url": c.startUpstream()}
	c.setConfig(map[string]any{"server": o.server, "limits": map[string]any{"sessions": 10_000}, "mcpServers": upstreams})
	for n := range replicaCount {
		c.replicas = append(c.replicas, nil)
		c.start(n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var checks sync.WaitGroup
	checks.Go(func() { c.balance.checkHealth(ctx) })
	front := httptest.NewServer(c.balance)
	c.url = front.URL
	t.Cleanup(func() {
		c.http.CloseIdleConnections()
		front.CloseClientConnections()
		front.Close()
		cancel()
		checks.Wait()
	})
	return c
}

// setConfig writes the config that replicas use from their next start on.
func (c *cluster) setConfig(config map[string]any) {
	c.t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.config = filepath.Join(c.t.TempDir(), "mcpx.json")
	if err := os.WriteFile(c.config, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// setKeys changes server.session_key from the next start of each replica on.
func (c *cluster) setKeys(keys ...string) {
	c.t.Helper()
	text, err := os.ReadFile(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		c.t.Fatal(err)
	}
	config["server"].(map[string]any)["session_key"] = keys
	c.setConfig(config)
}

// startUpstream starts the upstream "count" and returns its URL.
func (c *cluster) startUpstream() (url string) {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.Command(self, "-full", "-http", "127.0.0.1:0", "-record", c.record)
	cmd.Env = append(os.Environ(), c.env...)
	for name, value := range mcptest.Environment() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	first, err := lines.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, lines) })
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		reading.Wait()
		_ = cmd.Wait()
	})
	return strings.TrimSpace(first)
}

// start starts a replica that is not running, and lets it take requests.
func (c *cluster) start(n int) *replica {
	c.t.Helper()
	c.mu.Lock()
	name := fmt.Sprintf("%d.%d", n, len(c.all))
	c.mu.Unlock()
	r := startReplica(c.t, name, c.config, c.env)
	c.mu.Lock()
	c.replicas[n], c.all[name] = r, r
	c.mu.Unlock()
	eventually(c.t, name+" is healthy", func() (string, bool) {
		got := r.health()
		return got, strings.HasPrefix(got, "200 ")
	})
	if err := c.balance.add(name, r.url); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// replica returns the nth replica.
func (c *cluster) replica(n int) *replica {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.replicas[n]
}

// wasKilled reports whether a backend was killed.
func (c *cluster) wasKilled(backend string) bool {
	c.mu.Lock()
	r := c.all[backend]
	c.mu.Unlock()
	return r != nil && r.wasKilled()
}

// kill kills a replica and starts it again.
func (c *cluster) kill(n int) {
	c.t.Helper()
	r := c.replica(n)
	r.kill()
	c.balance.remove(r.name)
	c.start(n)
}

// restart stops a replica and starts it again. The balancer sends it no more requests
// beforehand, and waits for its responses.
func (c *cluster) restart(n int) {
	c.t.Helper()
	r := c.replica(n)
	isDone := c.balance.remove(r.name)
	eventually(c.t, r.name+" responds to its requests", func() (string, bool) { return "it has not", isDone() })
	r.stop()
	c.start(n)
}

// calls returns how often the upstream got each call of the tool work, by its nonce.
func (c *cluster) calls() map[string]int {
	c.t.Helper()
	text, err := os.ReadFile(c.record)
	if err != nil && !os.IsNotExist(err) {
		c.t.Fatal(err)
	}
	count := map[string]int{}
	for line := range bytes.Lines(text) {
		var e mcptest.Event
		if err := json.Unmarshal(line, &e); err != nil {
			break // it is being written
		}
		if e.Kind == mcptest.Got {
			count[e.Subject]++
		}
	}
	return count
}

// waitForCall waits until the upstream has got a call of the tool work.
func (c *cluster) waitForCall(nonce string) {
	c.t.Helper()
	want, _ := json.Marshal(nonce)
	eventually(c.t, "the upstream gets "+nonce, func() (string, bool) {
		text, err := os.ReadFile(c.record)
		return fmt.Sprint("it has not: ", err), bytes.Contains(text, want)
	})
}

// shared returns the part "server" of a config with a session key and a store.
func shared(t *testing.T) map[string]any {
	t.Helper()
	return map[string]any{"session_key": newKey(), "store": storetest.Start(t).Address()}
}
