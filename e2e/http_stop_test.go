//go:build unix

package e2e

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestHTTPStop: on a signal, calls in flight are answered, streams that would never end
// are closed, and no child is left.
func TestHTTPStop(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			s := serveHTTP(t, map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t, "-full", "-count-calls"), "stubborn": mcptest.Upstream(t, "-ignore-eof", "-ignore-term")}}, options{})
			c, legacy := s.client("/mcp"), s.caller("")
			pids := map[string]int{}
			for _, name := range []string{"a", "stubborn"} {
				pids[name], _ = strconv.Atoi(c.exec(name, "pid", ""))
			}
			for _, pid := range pidsBelow(s.cmd.Process.Pid) {
				pids[fmt.Sprint("process ", pid)] = pid
			}
			standing, stream := c.listen(), legacy.openSSE("/sse")
			legacy.deliver(initializeLine("2024-11-05", "{}"))
			stream.next(0)
			subscription := s.caller("/mcp").sendRequest("subscriptions/listen", params2026(`{"notifications":{"promptsListChanged":true}}`, "{}"))
			subscription.next(0)
			sleep := execParams("a", "sleep", `{"ms":1500,"text":"slept"}`)
			call := c.sendRequest("tools/call", sleep)
			newest := s.caller("/mcp").sendRequest("tools/call", params2026(sleep, "{}"))
			legacy.deliver(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + sleep + `}`)
			s.underWay(c, 4) // with the call for the PID
			begin := time.Now()
			if err := s.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			for name, x := range map[string]*exchange{"2025-06-18": call, "2026-07-28": newest} {
				if got := textOf(t, string(x.answer().Result), false); got != "slept" {
					t.Errorf("the %s call got %q", name, got)
				}
			}
			for _, x := range []*exchange{standing, stream, subscription} {
				x.waitEnd()
			}
			if lines := stream.lines(); len(lines) != 2 {
				t.Errorf("the call over SSE was not answered: %q", lines)
			}
			s.endsWithin(begin, stopTime, pids)
		})
	}
}

// TestHTTPStopEndsCalls: a call that does not end is answered with the reason, and
// neither it nor its upstream keeps mcpx from stopping.
func TestHTTPStopEndsCalls(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, one(t, "-count-calls", "-ignore-eof", "-ignore-term"), options{})
	c := s.client("/mcp")
	pid, _ := strconv.Atoi(c.exec("a", "pid", ""))
	call := c.sendRequest("tools/call", execParams("a", "sleep", `{"ms":3600000}`))
	s.underWay(c, 2)
	begin := time.Now()
	s.stop()
	call.waitEnd()
	if lines := call.lines(); len(lines) != 1 {
		t.Errorf("the call was not told that mcpx is stopping: %q", lines)
	}
	s.endsWithin(begin, longStop, nil)
	gone(t, "the child", pid, time.Now())
}
