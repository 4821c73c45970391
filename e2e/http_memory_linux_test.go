package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
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

// settled waits until the memory of a process has not changed for two seconds, which is longer
// than mcpx waits before it returns memory, and returns it.
func (p *process) settled() int {
	p.t.Helper()
	last, same := 0, 0
	eventually(p.t, "the memory does not change", func() (string, bool) {
		now := p.resident()
		if same++; now>>20 != last>>20 {
			last, same = now, 0
		}
		return fmt.Sprintf("%d MB", now>>20), same == 100
	})
	return last
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

// TestUnreadMemoryIsReturned: when clients that do not read are gone, mcpx soon returns the
// memory of their responses, without a further call.
func TestUnreadMemoryIsReturned(t *testing.T) {
	const clients, calls, size = 5, 3, 8_000_000 // more than the system buffers, and all fit in memory
	s := serveHTTP(t, with(one(t), "limits", map[string]any{"result_tokens": 0, "unread_bytes": 32 << 20}), options{})
	deaf := &http.Client{Transport: &http.Transport{DialContext: dialDeaf}}
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}`, execParams("a", "large", fmt.Sprintf(`{"bytes":%d}`, size)))
	var bodies [clients * calls]io.ReadCloser
	var posting sync.WaitGroup
	for i := range clients {
		c := s.client("/mcp")
		for j := range calls {
			posting.Go(func() {
				answer, err := deaf.Do(c.request(http.MethodPost, "/mcp", strings.Replace(line, `"id":1`, fmt.Sprintf(`"id":%d`, j+1), 1)))
				if err != nil {
					t.Error(err)
					return
				}
				bodies[i*calls+j] = answer.Body
			})
		}
	}
	posting.Wait()
	if t.Failed() {
		return
	}
	held := s.settled()
	if held < len(bodies)*size && !race {
		t.Fatalf("mcpx holds %d MB, too little to tell", held>>20)
	}
	for _, b := range bodies {
		_ = b.Close() // closes the connection
	}
	eventually(t, "the memory is returned", func() (string, bool) {
		now := s.resident()
		return fmt.Sprintf("%d of %d MB", now>>20, held>>20), race || now < held/2
	})
}

// dialDeaf opens a connection whose system buffer for reading is small.
func dialDeaf(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return c, c.(*net.TCPConn).SetReadBuffer(16 << 10)
}
