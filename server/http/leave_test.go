package httpfront

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestStopDelay: until the delay is over, mcpx serves on, /health answers 503, and
// connections are not kept.
func TestStopDelay(t *testing.T) {
	s := listenHTTP(t, &HTTP{StopDelay: time.Hour}, upstream(t, "one"))
	id := s.open(t, "{}")
	if answer := s.do(t, "GET", "/health", ""); answer.StatusCode != http.StatusOK || answer.Close {
		t.Errorf("before the signal: status %d, connection closed: %t", answer.StatusCode, answer.Close)
	}
	s.stop()
	eventually(t, "/health answers 503 and closes the connection", func() bool {
		answer := s.do(t, "GET", "/health", "")
		return whole(t, answer) == `503 {"status":"stopping"}` && answer.Close
	})
	call := s.do(t, "POST", "/mcp", request("tools/call", exec("echo", `{"text":"still here"}`)), sessionHeader, id)
	if got := whole(t, call); !strings.Contains(got, "still here") || !call.Close {
		t.Errorf("a call during the delay: %s, connection closed: %t", got, call.Close)
	}
	_ = s.listener.Close()
	if err := s.wait(); err == nil {
		t.Error("Run did not report that its listener failed during the delay")
	}
}

// TestStopDelayEnds: after the delay, mcpx closes its streams and stops.
func TestStopDelayEnds(t *testing.T) {
	s := listenHTTP(t, &HTTP{StopDelay: time.Millisecond})
	standing := s.do(t, "GET", "/mcp", "", sessionHeader, s.open(t, "{}"))
	s.stop()
	if err := s.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if got := whole(t, standing); !strings.HasPrefix(got, "200 ") {
		t.Errorf("the GET stream ended with %s", got)
	}
}
