package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience is what anything that must happen may take on a loaded machine.
const patience = 30 * time.Second

// stopTime is what mcpx may take to stop.
const stopTime = 10 * time.Second

// anyCode is the exit code of a process whose exit code does not matter.
const anyCode = -2

// process is one run of mcpx that serves on stdio, and its client.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	out      io.ReadCloser
	begin    time.Time
	ended    chan struct{} // closed when the process is gone and all its output is read
	lastID   atomic.Int64
	wantCode int // the exit code that the end of the test checks, or anyCode

	mu      sync.Mutex
	answers map[string][]message // by their ids as they were written
	order   []message            // the same, as they came
	all     []message            // requests and notifications too
	stdout  strings.Builder
	stderr  strings.Builder
	faults  []string      // what must never be on stdout
	changed chan struct{} // closed when any of these changes
}

// message is a line of stdout.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`

	line string // as it was written
}

// options are what a run of mcpx may have besides its config.
type options struct {
	flags []string
	env   []string // added to the environment
	deaf  bool     // the client never reads
}

// start runs mcpx on a config, any value that marshals to one, and stops it
// after the test. Whatever the test does, every line on stdout must be a message,
// no request may be answered twice, and the exit code must be right.
func start(t *testing.T, config any, o options) *process {
	t.Helper()
	p := &process{t: t, ended: make(chan struct{}), answers: map[string][]message{}, changed: make(chan struct{})}
	p.cmd = exec.Command(binary, append([]string{writeConfig(t, config)}, o.flags...)...)
	p.cmd.Env = append(environment(t), o.env...)
	p.cmd.Stderr = writerFunc(p.addStderr)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	p.begin = time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		if !o.deaf {
			p.read(p.out)
		}
		_ = p.cmd.Wait() // exitCode has what it says
	}()
	t.Cleanup(p.check)
	return p
}

// serve runs mcpx in front of those upstreams.
func serve(t *testing.T, upstreams map[string]any) *process {
	t.Helper()
	return start(t, map[string]any{"mcpServers": upstreams}, options{})
}

func writeConfig(t *testing.T, config any) (path string) {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "mcpx.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// environment is what a run of mcpx gets: nothing of the tests' own that would
// change what it does.
func environment(t *testing.T) []string {
	env := []string{"HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"}
	for _, name := range []string{"PATH", "TMPDIR", "SYSTEMROOT", "TEMP", "TMP"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// update changes what the mutex guards and tells those who wait.
func (p *process) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *process) addStderr(text []byte) { p.update(func() { p.stderr.Write(text) }) }

// read takes the lines of stdout until it ends.
func (p *process) read(stdout io.Reader) {
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			p.update(func() { p.take(line, err == nil) })
		}
		if err != nil {
			return
		}
	}
}

func (p *process) take(line []byte, whole bool) {
	p.stdout.Write(line)
	m := message{line: strings.TrimSuffix(string(line), "\n")}
	if line[0] == '[' {
		p.takeBatch(m)
		return
	}
	err := json.Unmarshal(line, &m)
	p.all = append(p.all, m)
	switch {
	case err != nil || !whole:
		p.faults = append(p.faults, "a line that is no message: "+clip(string(line)))
	case m.JSONRPC != "2.0" || m.Method == "" && (m.Result == nil) == (m.Error == nil):
		p.faults = append(p.faults, "a message that is no JSON-RPC: "+clip(string(line)))
	case m.Method != "": // a notification, or a request of an upstream
	default:
		p.answers[string(m.ID)] = append(p.answers[string(m.ID)], m)
		p.order = append(p.order, m)
	}
}

// takeBatch takes the answers of a batch, which only one revision has.
func (p *process) takeBatch(batch message) {
	var answers []message
	if err := json.Unmarshal([]byte(batch.line), &answers); err != nil || len(answers) == 0 {
		p.faults = append(p.faults, "a batch that is none: "+clip(batch.line))
	}
	p.all = append(p.all, batch)
	for _, m := range answers {
		p.answers[string(m.ID)] = append(p.answers[string(m.ID)], m)
	}
}

// clip shortens what a failure shows.
func clip(text string) string {
	const limit = 2000
	if len(text) > limit {
		return text[:limit] + "…"
	}
	return text
}

// wait waits until done says so, with the mutex held, and reports whether it did
// in time.
func (p *process) wait(within time.Duration, done func() bool) bool {
	limit := time.NewTimer(within)
	defer limit.Stop()
	for {
		p.mu.Lock()
		ok, changed := done(), p.changed
		p.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-p.ended:
			p.mu.Lock()
			defer p.mu.Unlock()
			return done()
		case <-limit.C:
			return false
		}
	}
}

// waitStderr waits for a text on stderr.
func (p *process) waitStderr(part string) {
	p.t.Helper()
	if !p.wait(patience, func() bool { return strings.Contains(p.stderr.String(), part) }) {
		p.t.Fatalf("stderr never had %q:\n%s", part, clip(p.errors()))
	}
}

// errors is what stderr has so far.
func (p *process) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// output is what stdout has so far.
func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String()
}

// waitEnd waits for the end of the process and returns its exit code.
func (p *process) waitEnd(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(within):
		p.t.Errorf("mcpx did not end within %s; stderr:\n%s", within, clip(p.errors()))
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	return p.cmd.ProcessState.ExitCode()
}

// check stops the process if the test has not, and looks at what it left.
func (p *process) check() {
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		p.t.Error(err)
	}
	if code := p.waitEnd(stopTime); p.wantCode != anyCode && code != p.wantCode {
		p.t.Errorf("exit code %d, want %d; stderr:\n%s", code, p.wantCode, clip(p.errors()))
	}
	for _, fault := range p.faults {
		p.t.Errorf("stdout has %s", fault)
	}
	for id, answers := range p.answers {
		if len(answers) > 1 && id != "null" {
			p.t.Errorf("request %s was answered %d times", id, len(answers))
		}
	}
	for _, sign := range []string{"DATA RACE", "panic:", "fatal error:", "in a way it never should"} {
		if strings.Contains(p.errors(), sign) {
			p.t.Errorf("stderr has %q:\n%s", sign, clip(p.errors()[strings.Index(p.errors(), sign):]))
		}
	}
}
