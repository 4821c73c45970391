package e2e

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// patience is the time limit for anything that must happen, on a loaded machine.
const patience = time.Minute

// stopTime is the time limit for a stop.
const stopTime = 10 * time.Second

// longStop is the limit on a loaded machine when calls and children use all their time,
// 9 s together.
const longStop = stopTime + 2*time.Second

// anyCode is a wantCode that matches every exit code.
const anyCode = -2

// process is one run of mcpx, and its client if it serves on stdio.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	out      io.ReadCloser
	begin    time.Time
	ended    chan struct{} // closed when the process is gone and all its output is read
	lastID   atomic.Int64
	wantCode int // the exit code that the end of the test checks, or anyCode
	http     bool

	mu      sync.Mutex
	answers map[string][]message // by ID, as written
	order   []message            // the same in order
	all     []message            // with requests and notifications
	stdout  strings.Builder
	stderr  strings.Builder
	faults  []string      // output that must never occur
	changed chan struct{} // closed when any of these changes
}

// message is a message from mcpx: a line of stdout, or an event of a stream.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`

	line   string // as written
	stream int    // the HTTP answer that it came in; 0 if there is one stream for all
}

// options are the settings of a run of mcpx besides its config.
type options struct {
	flags []string
	env   []string // added to the environment
	deaf  bool     // the client never reads
	http  bool     // mcpx-sse on a free port, not mcpx

	program string // another program
}

// start runs mcpx with a config, any value that marshals to one, and stops it after the
// test. In every test, each line on stdout must be a message, no request may be answered
// twice, and the exit code must be right.
func start(t *testing.T, config any, o options) *process {
	t.Helper()
	p := &process{t: t, http: o.http, ended: make(chan struct{}), answers: map[string][]message{}, changed: make(chan struct{})}
	program := binary
	if o.http {
		program, o.flags = binaryHTTP, append([]string{"--port", "0"}, o.flags...)
	}
	p.cmd = exec.Command(cmp.Or(o.program, program), append([]string{configPath(t, config)}, o.flags...)...)
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
		_ = p.cmd.Wait() // waitEnd returns the exit code
	}()
	t.Cleanup(p.check)
	return p
}

// existing is the path of a config that exists.
type existing string

// configPath returns the file of a config: an existing one, or one that it writes.
func configPath(t *testing.T, config any) string {
	t.Helper()
	if path, ok := config.(existing); ok {
		return string(path)
	}
	return writeConfig(t, config)
}

// serve runs mcpx in front of these upstreams.
func serve(t *testing.T, upstreams map[string]any) *process {
	t.Helper()
	return start(t, map[string]any{"mcpServers": upstreams}, options{})
}

// writeConfig writes a config, any value that marshals to one.
func writeConfig(t *testing.T, config any) (path string) {
	t.Helper()
	return writeJSON(t, "mcpx.json", config)
}

// writeJSON writes a value to a file of the test.
func writeJSON(t *testing.T, name string, value any) (path string) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, name, string(text))
}

// writeFile writes a text to a file of the test.
func writeFile(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// environment returns the environment of a run of mcpx, without the variables of the
// test's own that could change its behavior.
func environment(t *testing.T) []string {
	home := "HOME=" + t.TempDir() // identifies the processes of this run, the watcher too
	mcptest.NoneLeft(t, home)
	env := []string{home, "GORACE=atexit_sleep_ms=0"}
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

// update changes guarded fields and wakes waiters.
func (p *process) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *process) addStderr(text []byte) { p.update(func() { p.stderr.Write(text) }) }

// read collects the lines of stdout until it ends.
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

// take records a line of stdout.
func (p *process) take(line []byte, whole bool) {
	p.stdout.Write(line)
	if !whole || p.http {
		p.faults = append(p.faults, "stdout has what is no message: "+clip(string(line)))
	}
	p.takeMessage(message{line: strings.TrimSuffix(string(line), "\n")})
}

// takeMessage records a message, over any front.
func (p *process) takeMessage(m message) {
	if strings.HasPrefix(m.line, "[") {
		p.takeBatch(m)
		return
	}
	err := json.Unmarshal([]byte(m.line), &m)
	p.all = append(p.all, m)
	switch {
	case err != nil:
		p.faults = append(p.faults, "what is no message: "+clip(m.line))
	case m.JSONRPC != "2.0" || m.Method == "" && (m.Result == nil) == (m.Error == nil):
		p.faults = append(p.faults, "a message that is no JSON-RPC: "+clip(m.line))
	case m.Method != "": // a notification, or an upstream's request
	default:
		p.answers[string(m.ID)] = append(p.answers[string(m.ID)], m)
		p.order = append(p.order, m)
	}
}

// takeBatch records the answers of a batch, which exist in one revision only.
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

// clip shortens a text for a failure message.
func clip(text string) string {
	const limit = 2000
	if len(text) > limit {
		return text[:limit] + "…"
	}
	return text
}

// wait waits until done, which is called with the mutex held, returns true. It reports
// whether that was in time.
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

// errors returns stderr so far.
func (p *process) errors() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// output returns stdout so far.
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

// stop ends mcpx: by the end of its input or, over HTTP, by a signal.
func (p *process) stop() {
	if err := p.stdin.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		p.t.Error(err)
	}
	if !p.http {
		return
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.wantCode = anyCode // there are no signals on Windows
		_ = p.cmd.Process.Kill()
	}
}

// check stops the process if the test has not, and checks its exit code and output.
func (p *process) check() {
	p.stop()
	if code := p.waitEnd(stopTime); p.wantCode != anyCode && code != p.wantCode {
		p.t.Errorf("exit code %d, want %d; stderr:\n%s", code, p.wantCode, clip(p.errors()))
	}
	for _, fault := range p.faults {
		p.t.Errorf("mcpx said %s", fault)
	}
	for id, answers := range p.answers {
		if len(answers) > 1 && id != "null" {
			p.t.Errorf("request %s was answered %d times", id, len(answers))
		}
	}
	for _, sign := range []string{"DATA RACE", "panic:", "fatal error:", "panic in ", "panic while "} {
		if strings.Contains(p.errors(), sign) {
			p.t.Errorf("stderr has %q:\n%s", sign, clip(p.errors()[strings.Index(p.errors(), sign):]))
		}
	}
}

// pidsBelow returns the descendants of a process; none where there is no /proc.
func pidsBelow(root int) (pids []int) {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has just ended
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil || len(fields) < 2 {
			continue
		}
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	for pid := range parents {
		for p, hops := parents[pid], 0; p > 1 && hops < 100; p, hops = parents[p], hops+1 {
			if p == root {
				pids = append(pids, pid)
				break
			}
		}
	}
	return pids
}

// combined runs a program without stdin in a folder, and returns its output and exit code.
func combined(t *testing.T, folder string, env []string, program string, args ...string) (text string, code int) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = folder, env
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
