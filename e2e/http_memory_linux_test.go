package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
)

var residentSize = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// resident returns the memory of a process in bytes.
func (p *process) resident() int {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	found := residentSize.FindSubmatch(status)
	if err != nil || found == nil {
		p.t.Fatalf("no size of the process: %v", err)
	}
	size, _ := strconv.Atoi(string(found[1]))
	return size << 10
}

// TestHTTPIdleSessions: a thousand idle sessions, half of them with an open stream, take
// less than 100 MB. One more is refused, the others work, and the end of one makes room.
// The test runs alone, since it would slow others down.
func TestHTTPIdleSessions(t *testing.T) {
	s := serveHTTP(t, one(t), options{})
	first := s.client("/mcp")
	first.exec("a", "echo", `{"text":"x"}`)
	before := s.resident()
	const most = 1000
	clients := make([]*caller, most-1)
	var opening sync.WaitGroup
	for worker := range 20 {
		opening.Go(func() {
			for i := worker; i < len(clients); i += 20 {
				clients[i] = s.client("/mcp")
				if i%2 == 0 {
					clients[i].listen()
				}
			}
		})
	}
	opening.Wait()
	if n := s.sessions(t, ""); n != most {
		t.Fatalf("%d sessions, want %d", n, most)
	}
	after := s.resident()
	t.Logf("%d sessions: %d MB, %d MB before", most, after>>20, before>>20)
	if !race && after > 100<<20 {
		t.Errorf("mcpx holds %d MB with %d idle sessions, %d MB before; want less than 100", after>>20, most, before>>20)
	}
	for range 3 {
		x := s.caller("").try("POST", "/mcp", initializeLine("2025-11-25", "{}"))
		x.want(t, "one session too many", 503, "limits.sessions")
	}
	for _, c := range []*caller{first, clients[0], clients[1], clients[most-2]} {
		if got := c.exec("a", "echo", `{"text":"alive"}`); got != "alive" {
			t.Errorf("got %q", got)
		}
	}
	first.try("DELETE", "/mcp", "").want(t, "DELETE", 204, "")
	s.client("/mcp")
}
