//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"mcpx/internal/mcptest"
)

// The upstreams. One is never harmed; the last is reached over HTTP.
const (
	steady       = "steady"
	remoteServer = "remote"
)

// sessionIdle is when mcpx forgets a session of HTTP that nobody uses.
const sessionIdle = 20 * time.Second

var (
	victims    = []string{"anna", "bert", "carl"}
	allServers = append([]string{steady, remoteServer}, victims...)
)

// program is a run of mcpx.
type program struct {
	name string
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has ended
}

// command prepares mcpx in front of those upstreams. Its log goes to a file.
func (s *soak) command(binary, name string, servers []string, flags ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	upstreams := map[string]any{}
	for _, server := range servers {
		env := mcptest.Environment()
		env["SOAK_RUN"], env["SOAK_SERVER"] = s.mark+" "+name, server
		upstreams[server] = map[string]any{
			"command": self, "args": []string{"-record", filepath.Join(s.dir, "record")}, "env": env,
			"timeout": "3s", "max_timeout": "10s", "startup_timeout": "5s",
		}
		if server == remoteServer {
			upstreams[server] = map[string]any{"url": s.remote.url, "timeout": "3s", "max_timeout": "10s", "startup_timeout": "5s"}
		}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": upstreams, "limits": map[string]any{"result_tokens": 0, "message_bytes": 4 << 20, "session_idle": sessionIdle.String()}})
	if err != nil {
		return nil, err
	}
	config := filepath.Join(s.dir, name+".json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(s.dir, binary), append([]string{config}, flags...)...)
	cmd.Env = append(os.Environ(), "SOAK_RUN="+s.mark+" "+name)
	return cmd, nil
}

// begin starts a prepared run with its log in a file, and tells when it ends.
func (s *soak) begin(name string, cmd *exec.Cmd) (*program, error) {
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &program{name: name, cmd: cmd, gone: make(chan struct{})}
	go func() {
		defer close(p.gone)
		_ = cmd.Wait()
	}()
	return p, nil
}

// stopTime is what mcpx may take to stop.
const stopTime = 10 * time.Second

// stop ends mcpx with whatever asks it to, and looks at what it leaves.
func (s *soak) stopProgram(p *program, ask func(), wantCode int) {
	begin := time.Now()
	ask()
	select {
	case <-p.gone:
	case <-time.After(stopTime + 2*time.Second):
		s.ledger.violation("%s did not stop within %s", p.name, stopTime)
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
	if code := p.cmd.ProcessState.ExitCode(); wantCode >= 0 && code != wantCode {
		s.ledger.violation("%s ended with %d, want %d", p.name, code, wantCode)
	}
	var left []int
	for time.Since(begin) < stopTime+2*time.Second {
		if left = s.processes(p.name); len(left) == 0 {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	s.left += len(left)
	s.ledger.violation("%s left the processes %d behind", p.name, left)
}

// remote is the upstream over HTTP. It is soak's own child: mcpx cannot start it.
type remote struct {
	soak *soak
	url  string
	cmd  *exec.Cmd
}

func startRemote(s *soak) (*remote, error) {
	r := &remote{soak: s, url: "http://" + freeAddress()}
	return r, r.start()
}

func (r *remote) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r.cmd = exec.Command(self, "-record", filepath.Join(r.soak.dir, "record"), "-http", r.url[len("http://"):])
	r.cmd.Env = os.Environ()
	for key, value := range mcptest.Environment() {
		r.cmd.Env = append(r.cmd.Env, key+"="+value)
	}
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("the remote upstream: %w", err)
	}
	return nil
}

func (r *remote) stop() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}
