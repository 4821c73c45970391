//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"mcpx/internal/mcptest"
)

// remote is a remote upstream, a process that the soak starts. It keeps its port.
type remote struct {
	soak *soak
	name string
	flag string // selects the transport
	url  string
	cmd  *exec.Cmd
	logs sync.WaitGroup

	relay *httpRelay // if there is a planted bug
}

// startRemotes starts the remote upstreams of the parts.
func (s *soak) startRemotes() error {
	flags := map[string]string{remoteServer: "-http", legacyServer: "-sse"}
	for _, p := range s.parts {
		for _, server := range p.servers {
			if !isRemote(server) || s.remotes[server] != nil {
				continue
			}
			r := &remote{soak: s, name: server, flag: flags[server], url: "http://" + freeAddress()}
			s.remotes[server] = r
			if err := r.start(); err != nil {
				return err
			}
			if !s.bug.concerns(p, server) {
				continue
			}
			relay, err := startHTTPRelay(newRelay(s.bug.kind, s.record), r.url)
			if err != nil {
				return err
			}
			r.relay = relay
		}
	}
	return nil
}

// address returns the URL for mcpx.
func (r *remote) address() string {
	if r.relay != nil {
		return r.relay.url
	}
	return r.url
}

func (s *soak) stopRemotes() {
	for _, r := range s.remotes {
		r.stop()
		if r.relay != nil {
			r.relay.stop()
		}
	}
}

// start starts the upstream and waits until it listens. It tries again if a connection of
// another program uses the port for a moment.
func (r *remote) start() (err error) {
	const tries = 50
	for range tries {
		if err = r.try(); err == nil {
			return nil
		}
		<-time.After(100 * time.Millisecond)
	}
	return fmt.Errorf("the upstream %s does not start: %w", r.name, err)
}

func (r *remote) try() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r.cmd = exec.Command(self, "-record", r.soak.record, "-name", r.name, r.flag, strings.TrimPrefix(r.url, "http://"))
	r.cmd.Env = append(os.Environ(), "SOAK_RUN="+r.soak.mark+" "+r.name)
	for key, value := range r.soak.upstreamEnv() {
		r.cmd.Env = append(r.cmd.Env, key+"="+value)
	}
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := r.cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(stderr)
	first, _ := lines.ReadString('\n')
	if strings.TrimSpace(first) != r.url {
		r.stop()
		return errors.New(strings.TrimSpace(first))
	}
	r.logs.Go(func() { _, _ = io.Copy(io.Discard, lines) })
	return nil
}

func (r *remote) stop() {
	if r.cmd == nil || r.cmd.Process == nil {
		return
	}
	_ = r.cmd.Process.Kill()
	r.logs.Wait()
	_ = r.cmd.Wait()
}

// restart kills the upstream and starts it again after a while.
func (r *remote) restart(ctx context.Context) {
	down := r.soak.faults.add(fault{kind: remoteKilled, upstream: r.name, pid: r.cmd.Process.Pid, from: time.Now()})
	r.stop()
	sleep(ctx, 500*time.Millisecond)
	if err := r.start(); err != nil {
		r.soak.ledger.violation(other, "%v", err)
	}
	r.soak.faults.end(down)
}

// closeIdle makes the remote upstreams close idle connections.
func (s *soak) closeIdle() {
	for _, r := range s.remotes {
		r.misbehave(mcptest.CloseIdle, 0)
	}
}

// misbehave makes the upstream cause a fault, which it records itself.
func (r *remote) misbehave(kind string, held time.Duration) {
	query := url.Values{"kind": {kind}, "ms": {fmt.Sprint(held.Milliseconds())}}
	if _, err := requestOnce(http.MethodPost, r.url+mcptest.FaultPath+"?"+query.Encode()); err != nil {
		r.soak.ledger.violation(other, "the upstream %s did not take the fault %q: %v", r.name, kind, err)
	}
}
