//go:build !windows

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"

	"mcpx/internal/mcptest"
)

// screen is a run of mcpx by a person at a terminal.
type screen struct {
	t     *testing.T
	cmd   *exec.Cmd
	tty   *os.File
	ended chan struct{}

	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{} // closed when there is more text
}

// columns is the width of the terminal.
const columns = 100

// look starts mcpx at a terminal; CONFIG among the arguments stands for the
// config of those upstreams.
func look(t *testing.T, upstreams map[string]any, env []string, args ...string) *screen {
	t.Helper()
	return lookAt(t, columns, upstreams, env, args...)
}

// lookAt is look at a terminal of another width.
func lookAt(t *testing.T, columns uint16, upstreams map[string]any, env []string, args ...string) *screen {
	t.Helper()
	config := writeConfig(t, map[string]any{"mcpServers": upstreams})
	for i, arg := range args {
		if arg == "CONFIG" {
			args[i] = config
		}
	}
	s := &screen{t: t, cmd: exec.Command(binary, args...), ended: make(chan struct{}), changed: make(chan struct{})}
	s.cmd.Env = append(append(environment(t), "TERM=xterm"), env...)
	tty, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: columns})
	if err != nil {
		t.Fatal(err)
	}
	s.tty = tty
	go s.read()
	t.Cleanup(func() {
		s.end()
		_ = tty.Close()
	})
	return s
}

func (s *screen) read() {
	defer close(s.ended)
	buffer := make([]byte, 4096)
	for {
		n, err := s.tty.Read(buffer)
		s.mu.Lock()
		s.text.Write(buffer[:n])
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil { // the last one at the terminal is gone
			_ = s.cmd.Wait()
			return
		}
	}
}

// see waits for a text on the screen, or for any of several.
func (s *screen) see(parts ...string) {
	s.t.Helper()
	there := func(text string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	limit := time.After(patience)
	for {
		s.mu.Lock()
		text, changed := s.text.String(), s.changed
		s.mu.Unlock()
		if there(text) {
			return
		}
		select {
		case <-changed:
		case <-s.ended:
			if s.mu.Lock(); !there(s.text.String()) {
				s.t.Errorf("the screen never had %q:\n%q", parts, s.text.String())
			}
			s.mu.Unlock()
			return
		case <-limit:
			s.t.Fatalf("the screen never had %q:\n%q", parts, text)
		}
	}
}

// typed types at the terminal.
func (s *screen) typed(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

const ctrlC = "\x03"

// end waits for the end of the process and returns what was on the screen.
func (s *screen) end() string {
	select {
	case <-s.ended:
	case <-time.After(patience):
		s.t.Error("mcpx did not end")
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// exitCode is that of a process that has ended.
func (s *screen) exitCode() int {
	s.end()
	return s.cmd.ProcessState.ExitCode()
}

func TestTerminalTable(t *testing.T) {
	t.Parallel()
	upstreams := map[string]any{
		"good": mcptest.Upstream(t, "-start-delay", "8s"),
		"gone": map[string]any{"command": "mcpx-no-such-program"},
	}
	s := look(t, upstreams, nil, "check", "CONFIG")
	s.see("starting good… ")
	s.see("starting good… 1s", "starting good… 2s", "starting good… 3s", "starting good… 4s", "starting good… 5s", "starting good… 6s", "starting good… 7s") // the line is drawn when there is time
	text := s.end()
	for _, part := range []string{
		"\r\x1b[K\x1b[1mserver\x1b[0m", // the line is gone before the table comes
		"\x1b[36mgood\x1b[0m    \x1b[32mready\x1b[0m",
		"\x1b[36mgone\x1b[0m    \x1b[31mfailed\x1b[0m",
		"…\r\n", // a reason that is too long for the line
		"\x1b[31mgone\x1b[0m: command \"mcpx-no-such-program\" was not found in PATH; install it, or give its full path\r\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%q", part, text)
		}
	}
	if code := s.exitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
}

// On a narrow terminal no line of a table wraps, and bars keep their proportions.
func TestNarrowTerminal(t *testing.T) {
	t.Parallel()
	upstreams := map[string]any{
		"few": mcptest.Upstream(t, "-no-tools"), "many": mcptest.Upstream(t), "more": mcptest.Upstream(t, "-tools", "100"),
		"gone": map[string]any{"command": "mcpx-no-such-program"},
	}
	for command, last := range map[string]string{"tokens": "with mcpx", "check": "gone"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			text := lookAt(t, 40, upstreams, []string{"NO_COLOR=1"}, command, "CONFIG").end()
			_, shown, _ := strings.Cut(text, "server ")
			lines, bars, end := strings.Split("server "+shown, "\r\n"), map[int]bool{}, false
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); n > 40 {
					t.Errorf("%d columns: %q", n, line)
				}
				bars[strings.Count(line, "█")] = true
				if end = strings.HasPrefix(line, last); end {
					break
				}
			}
			if !end {
				t.Errorf("no line of %q in\n%s", last, text)
			}
			if command == "tokens" && len(bars) < 3 {
				t.Errorf("the bars are all alike:\n%s", text)
			}
		})
	}
}

func TestTerminalWithoutColours(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env       []string
		forbidden string
	}{
		"NO_COLOR": {[]string{"NO_COLOR=1"}, "m"},
		"dumb":     {[]string{"TERM=dumb"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := look(t, map[string]any{"good": mcptest.Upstream(t, "-start-delay", "500ms")}, c.env, "check", "CONFIG")
			text := s.end()
			if !strings.Contains(text, "good    ready  stdio") {
				t.Errorf("no table in\n%q", text)
			}
			for _, escape := range strings.Split(text, "\x1b[")[1:] {
				if end := strings.IndexAny(escape, "mK"); c.forbidden == "" || end < 0 || escape[end:end+1] == c.forbidden {
					t.Errorf("an escape %q in\n%q", escape, text)
				}
			}
		})
	}
}

// What a server says of how far it is shows while its tool runs, and is gone
// when the result comes.
func TestTerminalProgress(t *testing.T) {
	t.Parallel()
	s := look(t, map[string]any{"t": mcptest.Upstream(t)}, nil, "exec", "CONFIG", "t", "progress", "steps=4", "every_ms=1000")
	s.see("progress: 1/4 (25 %) ", "progress: 2/4 (50 %) ", "progress: 3/4 (75 %) ")
	// After the result comes nothing but the line of a stop that takes its time, and is gone.
	want := regexp.MustCompile(`\r\x1b\[K4 steps\r\n(\r\x1b\[Kstopping t… \d+s)*(\r\x1b\[K)?$`)
	if text := s.end(); !want.MatchString(text) {
		t.Errorf("%q", text)
	}
	if code := s.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A server cannot steer the terminal, by nothing it says.
func TestTerminalCannotBeSteered(t *testing.T) {
	t.Parallel()
	const evil = "\u001b[2J\u009b2J"
	upstreams := map[string]any{"t": mcptest.Upstream(t, "-full", "-instructions", evil)}
	hostile := `result:={"content":[{"type":"text","text":"line\n\u001b[2J\u009b2J"},{"type":"image","mimeType":"\u001b[2J\u009b2J","data":"aGk="}]}`
	for name, args := range map[string][]string{
		"text":    {"exec", "CONFIG", "t", "raw", hostile},
		"JSON":    {"exec", "CONFIG", "t", "raw", hostile, "--json"},
		"inspect": {"inspect", "CONFIG", "t"},
		"all":     {"inspect", "CONFIG", "t", "--json"},
		"refusal": {"resources", "CONFIG", "t", "x://missing" + evil},
		"error":   {"exec", "CONFIG", "t", "raw", `result:={"isError":true,"content":[{"type":"text","text":"\u001b[2J\u009b2J"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := look(t, upstreams, nil, args...).end()
			if strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\u009b") {
				t.Errorf("%q", text)
			}
			if !strings.Contains(text, `\u001b[2J\u009b2J`) {
				t.Errorf("what was said is not shown:\n%q", text)
			}
		})
	}
}

// Ctrl-C cancels the call: the server is told, and mcpx ends at once.
func TestCtrlCCancelsTheCall(t *testing.T) {
	t.Parallel()
	s := look(t, map[string]any{"t": mcptest.Upstream(t)}, []string{"NO_COLOR=1"}, "exec", "CONFIG", "t", "sleep", "ms=3600000", "--log-level", "debug")
	s.see("calling sleep…")
	begin := time.Now()
	s.typed(ctrlC)
	text := s.end()
	if took := time.Since(begin); took > stopTime {
		t.Errorf("took %s", took)
	}
	if !strings.Contains(text, `line="cancelled `) {
		t.Errorf("the server was not told:\n%q", text)
	}
	if !strings.Contains(text, "error: interrupted; what was under way was cancelled\r\n") {
		t.Errorf("%q", text)
	}
	if code := s.exitCode(); code != 130 {
		t.Errorf("exit code %d", code)
	}
}

func TestCtrlCAtAnyTime(t *testing.T) {
	t.Parallel()
	upstreams := map[string]any{"t": mcptest.Upstream(t), "slow": mcptest.Upstream(t, "-start-delay", "1h")}
	for name, c := range map[string]struct {
		args []string
		see  string
	}{
		"while a server starts":     {[]string{"exec", "CONFIG", "slow", "echo", "text=x"}, "starting slow…"},
		"while servers are checked": {[]string{"check", "CONFIG"}, "starting slow…"},
		"while tokens are counted":  {[]string{"tokens", "CONFIG"}, "starting slow…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := look(t, upstreams, nil, c.args...)
			s.see(c.see)
			s.typed(ctrlC)
			s.see("error: interrupted")
			if code := s.exitCode(); code != 130 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// A second Ctrl-C ends mcpx at once, however long a server takes to stop; the
// watcher ends the server.
func TestSecondCtrlC(t *testing.T) {
	t.Parallel()
	s := look(t, map[string]any{"t": mcptest.Upstream(t, "-ignore-eof", "-ignore-term")}, nil, "exec", "CONFIG", "t", "sleep", "ms=3600000")
	s.see("calling sleep…")
	s.typed(ctrlC)
	s.see("stopping t…")
	s.typed(ctrlC)
	s.end()
	var status syscall.WaitStatus
	if status, _ = s.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("%s", s.cmd.ProcessState)
	}
}

// A person is asked what a server wants to know during a call.
func TestElicitationAtTheTerminal(t *testing.T) {
	t.Parallel()
	form := `params={"message":"Who are you?","requestedSchema":{"type":"object","properties":{` +
		`"name":{"type":"string","description":"Your name"},"age":{"type":"integer"},"ok":{"type":"boolean"},"colour":{"enum":["red","blue"],"default":"blue"}},"required":["name","ok"]}}`
	upstreams := map[string]any{"t": mcptest.Upstream(t)}
	for name, c := range map[string]struct {
		params string
		steps  [][2]string // what is seen, what is typed then
		want   string
	}{
		"filled in": {form, [][2]string{
			{"t asks: Who are you?\r\n", ""}, {"name (Your name): ", "\n"}, {"\r\n  name (Your name): ", "5\n"},
			{"age (integer; optional): ", "old\n"}, {`expected integer, got string "old"`, "42\n"}, {"ok (y/n): ", "no\n"}, {"colour (red | blue; optional) [blue]: ", "\n"},
		}, `{"action":"accept","content":{"name":"5","age":42,"ok":false,"colour":"blue"}}`},
		"declined":      {form, [][2]string{{"name (Your name): ", "\x04"}}, `{"action":"decline"}`},
		"agreed":        {`params={"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`, [][2]string{{"agree? [y/N] ", "y\n"}}, `{"action":"accept","content":{}}`},
		"not agreed":    {`params={"message":"Sure?"}`, [][2]string{{"agree? [y/N] ", "\n"}}, `{"action":"decline"}`},
		"a page":        {`params={"mode":"url","message":"Log in","url":"https://example.com/login"}`, [][2]string{{"open https://example.com/login\r\n", ""}, {"done? [y/N] ", "y\n"}}, `{"action":"accept"}`},
		"hostile words": {`params={"message":"\u001b[2Jhi"}`, [][2]string{{`t asks: \u001b[2Jhi`, ""}, {"[y/N] ", "n\n"}}, `{"action":"decline"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := look(t, upstreams, nil, "exec", "CONFIG", "t", "ask", "method=elicitation/create", c.params)
			for _, step := range c.steps {
				s.see(step[0])
				s.typed(step[1])
			}
			s.see(c.want)
			if code := s.exitCode(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// TestDemoAtTheTerminal: the tour has colors, and what it writes itself fits into
// 80 columns. A demo that asks something gets its answer from the person.
func TestDemoAtTheTerminal(t *testing.T) {
	t.Parallel()
	s := lookAt(t, 80, nil, nil, "demo")
	text := s.end()
	if code := s.exitCode(); code != 0 || !strings.Contains(text, "\x1b[1m1. The agent's context, in tokens.") || !strings.Contains(text, "\x1b[2m$\x1b[0m \x1b[36m") {
		t.Errorf("exit code %d\n%q", code, text)
	}
	for line := range strings.SplitSeq(regexp.MustCompile("\x1b\\[[0-9;]*[mK]").ReplaceAllString(text, ""), "\r\n") {
		if isOwn := regexp.MustCompile(`^[0-9]\. |^A tour|^Next`).MatchString(line); isOwn && utf8.RuneCountInString(line) > 80 {
			t.Errorf("over 80 columns: %s", line)
		}
	}
	plain := lookAt(t, 80, nil, []string{"NO_COLOR=1"}, "demo")
	if text := plain.end(); strings.Contains(text, "\x1b[1m") {
		t.Errorf("colors in %q", text)
	}
	asks := look(t, map[string]any{"show": map[string]any{"command": "${MCPX}", "args": []string{"demo", "show"}}}, nil, "exec", "CONFIG", "show", "order_coffee")
	for _, step := range [][2]string{
		{"show asks: Which coffee would you like?\r\n", ""},
		{"Drink (espresso | cappuccino | latte): ", "latte\n"},
		{"Size (small | medium | large; optional) [medium]: ", "\n"},
		{"Sugar (Spoons of sugar; integer; 0 to 3; optional) [0]: ", "2\n"},
		{"One medium latte, sugar: 2. (A demo: nothing was ordered.)", ""},
	} {
		asks.see(step[0])
		asks.typed(step[1])
	}
	if code := asks.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// Whoever reads only the beginning, as head does, hears no complaint about it.
func TestReaderIsGone(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, map[string]any{"mcpServers": map[string]any{"t": mcptest.Upstream(t)}})
	for _, args := range [][]string{{"exec", config, "t", "echo", "text=x"}, {"inspect", config, "t"}, {"check", config}, {"demo"}} {
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = out.Close()
		cmd := exec.Command(binary, args...)
		cmd.Env = environment(t)
		var stderr strings.Builder
		cmd.Stdout, cmd.Stderr = in, &stderr
		err = cmd.Run()
		_ = in.Close()
		var failed *exec.ExitError
		if !errors.As(err, &failed) || failed.ExitCode() != 1 || stderr.Len() > 0 {
			t.Errorf("%s: %v, %q", args[0], err, stderr.String())
		}
	}
}

// Where nobody looks, there is no line that comes and goes.
func TestNoLineInAPipe(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, map[string]any{"mcpServers": map[string]any{"slow": mcptest.Upstream(t, "-start-delay", "600ms")}})
	for _, args := range [][]string{{"check", config}, {"exec", config, "slow", "progress", "steps=6", "every_ms=100"}} {
		cmd := exec.Command(binary, args...)
		cmd.Env = environment(t)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		stdout, err := cmd.Output()
		var failed *exec.ExitError
		if errors.As(err, &failed) || stderr.Len() > 0 || strings.ContainsAny(string(stdout), "\x1b\r") {
			t.Errorf("%v: %v\n%q\n%q", args[0], err, stdout, stderr.String())
		}
	}
}

// TestDumbTerminal: a terminal that cannot clear a line shows what is waited for
// once, on a line of its own, and no escapes.
func TestDumbTerminal(t *testing.T) {
	t.Parallel()
	s := look(t, map[string]any{"slow": mcptest.Upstream(t, "-start-delay", "1500ms")}, []string{"TERM=dumb"}, "check", "CONFIG")
	text := s.end()
	if strings.Count(text, "starting slow…\r\n") != 1 || !strings.Contains(text, "ready") || strings.Contains(text, "\x1b") {
		t.Errorf("the screen has\n%q", text)
	}
}
