//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestHTTPStop: on a signal calls in flight are answered, streams end, and no
// child is left.
func TestHTTPStop(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			s := serveHTTP(t, map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t, "-full", "-count-calls"), "stubborn": mcptest.Upstream(t, "-ignore-eof", "-ignore-term")}}, options{})
			c, older := s.client("/mcp"), s.caller("")
			pids := map[string]int{}
			for _, name := range []string{"a", "stubborn"} {
				pids[name], _ = strconv.Atoi(c.exec(name, "pid", ""))
			}
			for _, pid := range pidsBelow(s.cmd.Process.Pid) {
				pids[fmt.Sprint("process ", pid)] = pid
			}
			standing, stream := c.listen(), older.openSSE("/sse")
			older.tell(initializeLine("2024-11-05", "{}"))
			stream.next(0)
			call := c.ask("tools/call", execParams("a", "sleep", `{"ms":1500,"text":"slept"}`))
			modern := s.caller("/mcp").ask("tools/call", modernParams(execParams("a", "sleep", `{"ms":1500,"text":"slept"}`), "{}"))
			older.tell(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + execParams("a", "sleep", `{"ms":1500,"text":"slept"}`) + `}`)
			s.underWay(c, 4) // with that for the id
			begin := time.Now()
			if err := s.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			for name, x := range map[string]*exchange{"legacy": call, "modern": modern} {
				if got := textOf(t, string(x.answer().Result), false); got != "slept" {
					t.Errorf("the %s call got %q", name, got)
				}
			}
			standing.waitEnd()
			stream.waitEnd()
			if lines := stream.lines(); len(lines) != 2 {
				t.Errorf("the call over SSE was not answered: %q", lines)
			}
			if code := s.waitEnd(stopTime); code != 0 {
				t.Errorf("exit code %d", code)
			}
			within(t, "the stop", time.Since(begin), stopTime)
			for name, pid := range pids {
				gone(t, name, pid, begin.Add(stopTime))
			}
		})
	}
}

// TestHTTPStopWithOpenStreams: streams that would never end do not keep mcpx.
func TestHTTPStopWithOpenStreams(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name string
		open func(s *site) *exchange
	}{
		{"a standing stream", func(s *site) *exchange { return s.client("/mcp").listen() }},
		{"a stream of SSE", func(s *site) *exchange { return s.caller("").openSSE("/sse") }},
		{"subscriptions/listen", func(s *site) *exchange {
			x := s.caller("/mcp").ask("subscriptions/listen", modernParams(`{"notifications":{"promptsListChanged":true}}`, "{}"))
			x.next(0)
			return x
		}},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			s := serveHTTP(t, one(t, "-full"), options{})
			stream := v.open(s)
			if stream.status != http.StatusOK {
				t.Fatalf("status %d", stream.status)
			}
			begin := time.Now()
			s.stop()
			stream.waitEnd()
			if code := s.waitEnd(stopTime); code != 0 {
				t.Errorf("exit code %d", code)
			}
			within(t, "the stop", time.Since(begin), stopTime)
		})
	}
}

// TestHTTPStopWithEndlessCalls: calls that do not end are ended.
func TestHTTPStopWithEndlessCalls(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, one(t, "-count-calls", "-ignore-eof", "-ignore-term"), options{})
	c := s.client("/mcp")
	pid, _ := strconv.Atoi(c.exec("a", "pid", ""))
	call := c.ask("tools/call", execParams("a", "sleep", `{"ms":3600000}`))
	s.underWay(c, 2)
	begin := time.Now()
	s.stop()
	call.waitEnd()
	if lines := call.lines(); len(lines) != 1 {
		t.Errorf("the call was not told that mcpx is stopping: %q", lines)
	}
	if code := s.waitEnd(longStop); code != 0 {
		t.Errorf("exit code %d", code)
	}
	within(t, "the stop", time.Since(begin), longStop)
	gone(t, "the child", pid, time.Now())
}
