//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// program is a run of mcpx.
type program struct {
	part part
	cmd  *exec.Cmd
	gone chan struct{} // closed when it has ended
}

// command prepares mcpx with the config of a part.
func (s *soak) command(p part, flags ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s.config(p, self))
	if err != nil {
		return nil, err
	}
	config := filepath.Join(s.dir, p.name+".json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, err
	}
	binary := "mcpx"
	if p.isHTTP {
		binary = "mcpx-sse"
	}
	cmd := exec.Command(filepath.Join(s.binaries, binary), append([]string{config}, flags...)...)
	cmd.Env = append(os.Environ(), "SOAK_RUN="+s.mark+" "+p.name, "XDG_CACHE_HOME="+filepath.Join(s.dir, "cache"), "XDG_STATE_HOME="+filepath.Join(s.dir, "state"))
	return cmd, nil
}

// begin starts a prepared run with its log in a file.
func (s *soak) begin(p part, cmd *exec.Cmd) (*program, error) {
	log, err := os.Create(filepath.Join(s.dir, p.name+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	run := &program{part: p, cmd: cmd, gone: make(chan struct{})}
	go func() {
		defer close(run.gone)
		_ = cmd.Wait()
	}()
	return run, nil
}

// stopTime is the time limit for a stop.
const stopTime = 10 * time.Second

// stopProgram ends mcpx by calling end, and checks its exit code and that no process is
// left. From here on any failure of its calls is explained.
func (s *soak) stopProgram(p *program, end func(), wantCode int) {
	begin := time.Now()
	s.faults.add(fault{kind: mcpxEnds, part: p.part.name, from: begin})
	end()
	select {
	case <-p.gone:
	case <-time.After(stopTime + 2*time.Second):
		s.ledger.violation(leftBehind, "%s did not stop within %s", p.part.name, stopTime)
		_ = p.cmd.Process.Kill()
		<-p.gone
	}
	if code := p.cmd.ProcessState.ExitCode(); wantCode >= 0 && code != wantCode {
		s.ledger.violation(other, "%s ended with %d, want %d", p.part.name, code, wantCode)
	}
	var left []int
	for time.Since(begin) < stopTime+2*time.Second {
		if left = s.processes(p.part.name); len(left) == 0 {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	s.left += len(left)
	s.ledger.violation(leftBehind, "%s left the processes %d behind", p.part.name, left)
}
