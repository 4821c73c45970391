//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// replica is one run of mcpx-sse.
type replica struct {
	t     *testing.T
	name  string
	url   string // without a path
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone and its log is read

	mu     sync.Mutex
	log    strings.Builder
	killed bool
}

var urlInLog = regexp.MustCompile(`mcpx: listening on (http://[^/]+)/mcp`)

// startReplica runs mcpx-sse on a free port and waits until it serves.
func startReplica(t *testing.T, name, config string, env []string) *replica {
	t.Helper()
	r := &replica{t: t, name: name, ended: make(chan struct{})}
	r.cmd = exec.Command(program, config, "--port", "0", "--log-level", "debug")
	r.cmd.Env, r.cmd.Stderr, r.cmd.Stdout = env, r, r
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait()
	}()
	t.Cleanup(r.check)
	eventually(t, name+" serves", func() (string, bool) {
		if found := urlInLog.FindStringSubmatch(r.text()); found != nil {
			r.url = found[1]
		}
		return clip(r.text()), r.url != "" || r.isGone()
	})
	if r.url == "" {
		t.Fatalf("%s did not start:\n%s", name, clip(r.text()))
	}
	return r
}

// Write implements io.Writer, for the log.
func (r *replica) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

// text returns the log so far.
func (r *replica) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

func (r *replica) isGone() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// kill ends the process without a warning.
func (r *replica) kill() {
	r.mu.Lock()
	r.killed = true
	r.mu.Unlock()
	_ = r.cmd.Process.Kill()
	<-r.ended
}

func (r *replica) wasKilled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.killed
}

// stop ends the process as Kubernetes does, and waits.
func (r *replica) stop() {
	r.t.Helper()
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	r.waitEnd()
}

// waitEnd waits for the end of a process that was told to stop.
func (r *replica) waitEnd() {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Errorf("%s did not stop:\n%s", r.name, clip(r.text()))
		r.kill()
	}
}

// check stops the process if the test has not, and checks its exit code and its log.
func (r *replica) check() {
	r.t.Helper()
	r.stop()
	if code := r.cmd.ProcessState.ExitCode(); code != 0 && !r.wasKilled() {
		r.t.Errorf("%s: exit code %d:\n%s", r.name, code, clip(r.text()))
	}
	for _, sign := range []string{"DATA RACE", "panic:", "fatal error:", "panic in ", "panic while "} {
		if _, after, found := strings.Cut(r.text(), sign); found {
			r.t.Errorf("%s logged %q: %s", r.name, sign, clip(after))
		}
	}
}

// health returns the status and the body of /health.
func (r *replica) health() string {
	answer, err := http.Get(r.url + "/health")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d %s", answer.StatusCode, body)
}
