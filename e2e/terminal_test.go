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

// look starts mcpx at a terminal. The argument CONFIG is replaced by the config of these
// upstreams.
func look(t *testing.T, upstreams map[string]any, env []string, args ...string) *screen {
	t.Helper()
	return lookAt(t, columns, upstreams, env, args...)
}

// lookAt is look with a terminal of another width.
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

// read collects what mcpx writes until it ends.
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

// see waits for any of these texts on the screen.
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

// typed sends keys.
func (s *screen) typed(keys string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

const ctrlC = "\x03"

// end waits for the end of the process and returns all that it wrote.
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

// exitCode waits for the end of the process and returns its exit code.
func (s *screen) exitCode() int {
	s.end()
	return s.cmd.ProcessState.ExitCode()
}

// TestCheckAtTheTerminal: the awaited server is shown until the table comes, which has
// colors and cuts long reasons.
func TestCheckAtTheTerminal(t *testing.T) {
	t.Parallel()
	upstreams := map[string]any{
		"good": mcptest.Upstream(t, "-start-delay", "8s"),
		"gone": map[string]any{"command": "mcpx-no-such-program"},
	}
	s := look(t, upstreams, nil, "check", "CONFIG")
	s.see("starting good… ")
	s.see("starting good… 1s", "starting good… 2s", "starting good… 3s", "starting good… 4s", "starting good… 5s", "starting good… 6s", "starting good… 7s") // a busy machine skips some
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

// TestNarrowTerminal: no line of a table is wider than the terminal, and bars keep their
// proportions.
func TestNarrowTerminal(t *testing.T) {
	t.Parallel()
	upstreams := map[string]any{"few": mcptest.Upstream(t, "-no-tools"), "many": mcptest.Upstream(t), "more": mcptest.Upstream(t, "-tools", "100")}
	for command, last := range map[string]string{"tokens": "with mcpx", "check": "more"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			text := lookAt(t, 40, upstreams, []string{"NO_COLOR=1"}, command, "CONFIG").end()
			_, shown, _ := strings.Cut(text, "server ")
			lines := strings.Split("server "+shown, "\r\n")
			end := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, last) })
			bars := map[int]bool{}
			for _, line := range lines[:end+1] {
				if n := utf8.RuneCountInString(line); n > 40 {
					t.Errorf("%d columns: %q", n, line)
				}
				bars[strings.Count(line, "█")] = true
			}
			if end < 0 {
				t.Errorf("no line of %q in\n%s", last, text)
			}
			if command == "tokens" && len(bars) < 3 {
				t.Errorf("the bars are all alike:\n%s", text)
			}
		})
	}
}

// TestTerminalWithoutColors: NO_COLOR leaves colors out. A dumb terminal, which cannot
// clear a line, gets no escapes, and shows what is awaited once on a line of its own.
func TestTerminalWithoutColors(t *testing.T) {
	t.Parallel()
	for env, escapes := range map[string]string{"NO_COLOR=1": "K", "TERM=dumb": ""} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
			text := look(t, map[string]any{"good": mcptest.Upstream(t, "-start-delay", "1500ms")}, []string{env}, "check", "CONFIG").end()
			if !strings.Contains(text, "good    ready  stdio") {
				t.Errorf("no table in\n%q", text)
			}
			for _, escape := range strings.Split(text, "\x1b[")[1:] {
				if end := strings.IndexAny(escape, "mK"); end < 0 || !strings.Contains(escapes, escape[end:end+1]) {
					t.Errorf("an escape %q in\n%q", escape, text)
				}
			}
			if env == "TERM=dumb" && strings.Count(text, "starting good…\r\n") != 1 {
				t.Errorf("the screen has\n%q", text)
			}
		})
	}
}

// TestTerminalShowsProgress: progress is shown while a tool runs, and cleared when the
// result comes.
func TestTerminalShowsProgress(t *testing.T) {
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

// TestServersCannotControlTheTerminal: escape sequences in any text of a server are
// shown as escapes.
func TestServersCannotControlTheTerminal(t *testing.T) {
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

// TestCtrlC: Ctrl-C ends a command at any time. A pending call is canceled at
// its server.
func TestCtrlC(t *testing.T) {
	t.Parallel()
	upstreams := map[string]any{"t": mcptest.Upstream(t), "slow": mcptest.Upstream(t, "-start-delay", "1h")}
	for name, c := range map[string]struct {
		args []string
		see  string
		want string
	}{
		"during a call":             {[]string{"exec", "CONFIG", "t", "sleep", "ms=3600000", "--log-level", "debug"}, "calling sleep…", `line="canceled `},
		"while a server starts":     {[]string{"exec", "CONFIG", "slow", "echo", "text=x"}, "starting slow…", ""},
		"while servers are checked": {[]string{"check", "CONFIG"}, "starting slow…", ""},
		"while tokens are counted":  {[]string{"tokens", "CONFIG"}, "starting slow…", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := look(t, upstreams, []string{"NO_COLOR=1"}, c.args...)
			s.see(c.see)
			begin := time.Now()
			s.typed(ctrlC)
			s.see("error: interrupted")
			if text := s.end(); !strings.Contains(text, c.want) || c.want != "" && !strings.Contains(text, "error: interrupted; what was under way was canceled\r\n") {
				t.Errorf("no %q in %q", c.want, text)
			}
			within(t, "the end", time.Since(begin), stopTime)
			if code := s.exitCode(); code != 130 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// TestSecondCtrlCEndsAtOnce: a second Ctrl-C does not wait for servers to stop. The
// watcher ends them.
func TestSecondCtrlCEndsAtOnce(t *testing.T) {
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

// TestElicitationAtTheTerminal: a person answers what a server asks during a call.
func TestElicitationAtTheTerminal(t *testing.T) {
	t.Parallel()
	form := `params={"message":"Who are you?","requestedSchema":{"type":"object","properties":{` +
		`"name":{"type":"string","description":"Your name"},"age":{"type":"integer"},"ok":{"type":"boolean"},"color":{"enum":["red","blue"],"default":"blue"}},"required":["name","ok"]}}`
	upstreams := map[string]any{"t": mcptest.Upstream(t)}
	for name, c := range map[string]struct {
		params string
		steps  [][2]string // what is seen, what is typed then
		want   string
	}{
		"filled in": {form, [][2]string{
			{"t asks: Who are you?\r\n", ""}, {"name – Your name: ", "\n"}, {"\r\n  name – Your name: ", "5\n"},
			{"age (whole number; optional): ", "old\n"}, {`expected integer, got string "old"`, "42\n"}, {"ok (y | n): ", "no\n"}, {"color (red | blue; Enter: blue): ", "\n"},
		}, `{"action":"accept","content":{"name":"5","age":42,"ok":false,"color":"blue"}}`},
		"declined":   {form, [][2]string{{"name – Your name: ", "\x04"}}, `{"action":"decline"}`},
		"agreed":     {`params={"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`, [][2]string{{"agree? [y/N] ", "y\n"}}, `{"action":"accept","content":{}}`},
		"not agreed": {`params={"message":"Sure?"}`, [][2]string{{"agree? [y/N] ", "\n"}}, `{"action":"decline"}`},
		"a page":     {`params={"mode":"url","message":"Log in","url":"https://example.com/login"}`, [][2]string{{"open https://example.com/login\r\n", ""}, {"done? [y/N] ", "y\n"}}, `{"action":"accept"}`},
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

// TestDemoHasColors: the tour has colors, unless NO_COLOR is set.
func TestDemoHasColors(t *testing.T) {
	t.Parallel()
	s := lookAt(t, 80, nil, nil, "demo")
	text := s.end()
	if code := s.exitCode(); code != 0 || !strings.Contains(text, "\x1b[1m1. The agent's context, in tokens.") || !strings.Contains(text, "\x1b[2m$\x1b[0m \x1b[36m") {
		t.Errorf("exit code %d\n%q", code, text)
	}
	if text := lookAt(t, 80, nil, []string{"NO_COLOR=1"}, "demo").end(); strings.Contains(text, "\x1b[1m") {
		t.Errorf("colors in %q", text)
	}
}

// TestClosedStdoutIsNoError: a reader that closes the pipe early, as head does, causes no
// message.
func TestClosedStdoutIsNoError(t *testing.T) {
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
