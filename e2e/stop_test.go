//go:build unix

package e2e

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// stop is a way to end mcpx.
type stop struct {
	name string
	stop func(p *process)
	code int
}

// stops are all of them, those that let calls in flight finish first.
var stops = []stop{
	{"stdin ends", func(p *process) { _ = p.stdin.Close() }, 0},
	{"SIGTERM", func(p *process) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }, 0},
	{"SIGINT", func(p *process) { _ = p.cmd.Process.Signal(syscall.SIGINT) }, 0},
	{"exit", func(p *process) { p.notify("notifications/exit", "{}") }, 0},
	{"SIGKILL", func(p *process) { _ = p.cmd.Process.Kill() }, -1},
	{"the client is gone", func(p *process) { _ = p.out.Close(); _ = p.stdin.Close() }, anyCode},
	{"the client no longer reads", (*process).readNoMore, anyCode},
}

// readNoMore closes the test's end of stdout and goes on writing, since a process that
// another test is just starting may have that end open for a moment.
func (p *process) readNoMore() {
	_ = p.out.Close()
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			_, _ = io.WriteString(p.stdin, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
			select {
			case <-p.ended:
				return
			case <-tick.C:
			}
		}
	}()
}

// relative is a kind of descendant of mcpx, and the call that starts it.
type relative struct{ what, tool, arguments string }

// TestStopLeavesNothing: however mcpx ends, no process is left, not even children that
// ignore requests to stop and grandchildren that left the group.
func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	kinds := []relative{
		{"child", "pid", "{}"},
		{"grandchild", "spawn", "{}"},
		{"grandchild without environment", "spawn", `{"bare":true}`},
	}
	if runtime.GOOS == "linux" {
		kinds = append(kinds, relative{"detached grandchild", "spawn", `{"detached":true}`})
	}
	stopLeavesNothing(t, stops, kinds)
}

// TestStopLeavesNoStranger: grandchildren that left the group and cleaned their
// environment, as sudo does, end too. After SIGKILL of mcpx that is not promised: their
// parents may end before the watcher has read the process tree.
func TestStopLeavesNoStranger(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("descendants that left the group are found on Linux alone")
	}
	asked := slices.DeleteFunc(slices.Clone(stops), func(s stop) bool { return s.name == "SIGKILL" })
	stopLeavesNothing(t, asked, []relative{{"detached grandchild without environment", "spawn", `{"detached":true,"bare":true}`}})
}

// stopLeavesNothing ends mcpx in these ways, with descendants of these kinds.
func stopLeavesNothing(t *testing.T, stops []stop, kinds []relative) {
	for _, s := range stops {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, map[string]any{
				"polite":   mcptest.Upstream(t),
				"stubborn": mcptest.Upstream(t, "-ignore-eof", "-ignore-term"),
			})
			p.wantCode = s.code
			p.initialize()
			pids := family(t, p, kinds)
			begin := time.Now()
			s.stop(p)
			p.waitEnd(stopTime)
			for _, what := range slices.Sorted(maps.Keys(pids)) {
				gone(t, what, pids[what], begin.Add(stopTime))
			}
		})
	}
}

// family starts processes of these kinds below both servers and returns the IDs of all
// descendants of mcpx. Those that survive are killed after the test.
func family(t *testing.T, p *process, kinds []relative) map[string]int {
	t.Helper()
	pids := map[string]int{}
	for _, server := range []string{"polite", "stubborn"} {
		for _, kind := range kinds {
			pid, err := strconv.Atoi(p.exec(server, kind.tool, kind.arguments))
			if err != nil {
				t.Fatal(err)
			}
			if !mcptest.Alive(pid) {
				t.Fatalf("the %s of %s did not even live", kind.what, server)
			}
			pids[kind.what+" of "+server] = pid
		}
	}
	for _, pid := range pidsBelow(p.cmd.Process.Pid) {
		pids[fmt.Sprint("process ", pid)] = pid // the watcher is one of them
	}
	t.Cleanup(func() {
		for _, pid := range pids {
			if mcptest.Alive(pid) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	return pids
}

// endsWithin waits until mcpx and its processes have ended, in time and with exit code 0.
func (p *process) endsWithin(begin time.Time, limit time.Duration, pids map[string]int) {
	p.t.Helper()
	if code := p.waitEnd(limit); code != 0 {
		p.t.Errorf("exit code %d", code)
	}
	within(p.t, "the stop", time.Since(begin), limit)
	for _, what := range slices.Sorted(maps.Keys(pids)) {
		gone(p.t, what, pids[what], begin.Add(limit))
	}
}

// gone waits until a process has ended.
func gone(t *testing.T, what string, pid int, deadline time.Time) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	limit := time.After(time.Until(deadline))
	for mcptest.Alive(pid) {
		select {
		case <-poll.C:
		case <-limit:
			t.Errorf("%s (process %d) is still there", what, pid)
			return
		}
	}
}

// gentleStops are the ways to end mcpx that let calls in flight finish.
var gentleStops = stops[:4]

// TestStopAnswersCalls: calls in flight have 5 s to end, and are then answered.
func TestStopAnswersCalls(t *testing.T) {
	t.Parallel()
	for _, s := range gentleStops {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, map[string]any{"a": mcptest.Upstream(t)})
			p.initialize()
			for i, ms := range []int{500, 2500} {
				p.send(fmt.Sprint(i), "tools/call", execParams("a", "sleep", fmt.Sprintf(`{"ms":%d,"text":"slept %d"}`, ms, ms)))
			}
			p.exec("a", "echo", `{"text":"the others are on their way"}`)
			begin := time.Now()
			s.stop(p)
			for i, want := range []string{"slept 500", "slept 2500"} {
				if got := textOf(t, string(p.answer(fmt.Sprint(i)).Result), false); got != want {
					t.Errorf("call %d answered %q, want %q", i, got, want)
				}
			}
			p.endsWithin(begin, stopTime, nil)
		})
	}
}

// TestStopEndsCalls: calls that do not end are canceled after 5 s and answered with the
// reason. Children that do not end either are killed in time.
func TestStopEndsCalls(t *testing.T) {
	t.Parallel()
	for _, s := range gentleStops {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, map[string]any{"a": mcptest.Upstream(t, "-ignore-eof", "-ignore-term"), "slow": mcptest.Upstream(t, "-start-delay", "1h")})
			p.initialize()
			pid, err := strconv.Atoi(p.exec("a", "pid", "{}"))
			if err != nil {
				t.Fatal(err)
			}
			p.send(`"forever"`, "tools/call", execParams("a", "sleep", `{"ms":3600000}`))
			p.send(`"starting"`, "tools/call", execParams("slow", "echo", `{"text":"x"}`))
			p.send(`"inspecting"`, "tools/call", inspectParams("slow", ""))
			p.exec("a", "echo", `{"text":"the others are on their way"}`)
			begin := time.Now()
			s.stop(p)
			p.endsWithin(begin, longStop, nil)
			gone(t, "the child", pid, time.Now())
			for _, id := range []string{`"forever"`, `"starting"`, `"inspecting"`} {
				if got := textOf(t, string(p.answer(id).Result), true); !strings.Contains(got, "mcpx is stopping") {
					t.Errorf("%s answered %q", id, got)
				}
			}
		})
	}
}

// TestStopDuringStart: upstreams that are still starting do not delay the stop.
func TestStopDuringStart(t *testing.T) {
	t.Parallel()
	upstreams := map[string]any{"gone": map[string]any{"command": "mcpx-no-such-program"}}
	for i := range 12 {
		upstreams[fmt.Sprint("slow", i)] = mcptest.Upstream(t, "-start-delay", "1h")
	}
	p := serve(t, upstreams)
	p.initialize()
	begin := time.Now()
	_ = p.stdin.Close()
	p.endsWithin(begin, stopTime, nil)
}

// TestStopWithDeafClient: a client that does not read its answers does not delay the stop.
func TestStopWithDeafClient(t *testing.T) {
	t.Parallel()
	for _, s := range stops[:2] {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			config := map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t)}, "limits": map[string]any{"result_tokens": 0}}
			p := start(t, config, options{deaf: true})
			p.wantCode = anyCode
			p.send("1", "tools/call", execParams("a", "large", `{"bytes":4000000}`))
			p.waitStderr("tool=large")
			begin := time.Now()
			s.stop(p)
			p.waitEnd(stopTime)
			within(t, "the stop", time.Since(begin), stopTime)
		})
	}
}
