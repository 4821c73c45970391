package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// remoteChild starts a test server over Streamable HTTP as a child and returns its config.
func remoteChild(t *testing.T, flags ...string) map[string]any {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"-http", "127.0.0.1:0"}, flags...)...)
	cmd.Env = environment(t)
	for key, value := range mcptest.Environment() {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(stderr)
	if !lines.Scan() {
		t.Fatal("the server does not say its address")
	}
	return map[string]any{"url": lines.Text(), "type": "http"}
}

// TestRequestsOfPastCalls: A's call has its response, is canceled, times out, or ends with A's
// client session. Later the upstream sends a request for it. B does not get the request, whether
// B has a pending call or connected only afterwards.
func TestRequestsOfPastCalls(t *testing.T) {
	t.Parallel()
	upstreams := map[string]func(t *testing.T) map[string]any{
		"stdio": func(t *testing.T) map[string]any { return mcptest.Upstream(t) },
		"http":  func(t *testing.T) map[string]any { return remoteChild(t, "-standing") },
	}
	for name, upstream := range upstreams {
		for _, how := range []string{"answer", "cancel", "timeout", "delete"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				config := upstream(t)
				if how == "timeout" {
					config["timeout"] = "1s"
				}
				s := serveHTTP(t, map[string]any{"mcpServers": map[string]any{"a": config}}, options{})
				for _, a := range asks {
					endAndAsk(t, s, how, a.method)
				}
			})
		}
	}
}

// endAndAsk ends a call of one client, and checks which client gets a later request of the
// upstream.
func endAndAsk(t *testing.T, s *site, how, method string) {
	t.Helper()
	askLate := func(c *caller, text string) (call *exchange, file string) {
		file = filepath.Join(t.TempDir(), "go")
		call = c.sendRequest("tools/call", execParams("a", "ask_late", fmt.Sprintf(`{"method":%q,"file":%q,"text":%q}`, method, file, text)))
		eventually(t, "the call is under way", func() (string, bool) {
			_, err := os.Stat(file + ".begun")
			return fmt.Sprint(err), err == nil
		})
		return call, file
	}
	first := s.client("/mcp")
	text := ""
	if how == "answer" {
		text = "it goes on"
	}
	call, file := askLate(first, text)
	switch how {
	case "answer":
		if got := textOf(t, string(call.answer().Result), false); got != text {
			t.Fatalf("got %s", got)
		}
	case "cancel":
		first.deliver(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, call.request.ID))
		call.waitEnd()
	case "timeout":
		if got := textOf(t, string(call.answer().Result), true); !strings.Contains(got, "timed out") {
			t.Fatalf("got %s", got)
		}
	case "delete":
		first.try(http.MethodDelete, "/mcp", "").want(t, "DELETE", http.StatusNoContent, "")
	}
	second := s.client("/mcp")
	streams := []*exchange{second.listen()}
	if how != "delete" {
		beside, _ := askLate(second, "")
		streams = append(streams, beside)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var answer string
	eventually(t, "the upstream has its answer", func() (string, bool) {
		text, err := os.ReadFile(file + ".answer")
		answer = string(text)
		return fmt.Sprintf("%v; the second client got %q", err, streams[len(streams)-1].lines()), len(text) > 0
	})
	if !strings.HasPrefix(answer, "error ") || !strings.Contains(answer, "isolation") {
		t.Errorf("%s: the upstream got %s, want an error that names isolation", method, answer)
	}
	for _, x := range streams {
		for _, line := range x.lines() {
			if strings.Contains(line, method) {
				t.Errorf("%s: the second client was asked %s", method, line)
			}
		}
	}
	second.try(http.MethodDelete, "/mcp", "").want(t, "DELETE", http.StatusNoContent, "")
}

// TestClientThatHasLeft: a call that has its response counts only while its client is there: the
// client has left when it closes its stream or its session. Then the next client is asked.
func TestClientThatHasLeft(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"closes its stream", "closes its session"} {
		s := serveHTTP(t, one(t, "-full"), options{})
		first, second := s.client("/mcp"), s.client("/mcp")
		stream := first.listen()
		first.exec("a", "echo", `{"text":"done"}`)
		ask := func() string {
			call := second.sendRequest("tools/call", execParams("a", "ask", `{"method":"roots/list"}`))
			if m := call.next(0); m.Method == "roots/list" {
				second.deliver(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}`, m.ID))
			}
			return textOf(t, string(call.answer().Result), false)
		}
		if got := ask(); !strings.Contains(got, "isolation") {
			t.Errorf("before it %s: %s, want an error that names isolation", how, got)
		}
		if how == "closes its session" {
			first.try(http.MethodDelete, "/mcp", "").want(t, "DELETE", http.StatusNoContent, "")
		} else {
			stream.drop()
		}
		eventually(t, "the other client is asked after the first "+how, func() (string, bool) {
			got := ask()
			return got, got == `{"roots":[]}`
		})
	}
}
