package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// unreadLimits are small, so that a client reaches them quickly.
var unreadLimits = map[string]any{"result_tokens": 0, "calls_per_client": 32, "unread_bytes": 1 << 20}

// stalled waits until a counter has not changed for half a second.
func stalled(t *testing.T, count *atomic.Int64) {
	t.Helper()
	last, same := int64(-1), 0
	eventually(t, "the counter stands still", func() (string, bool) {
		now := count.Load()
		if same++; now != last {
			last, same = now, 0
		}
		return fmt.Sprint(now), same == 25
	})
}

// TestUnreadAnswers: when a client on stdio writes calls and reads nothing, mcpx stops
// reading, holds little, and answers every call once the client reads.
func TestUnreadAnswers(t *testing.T) {
	calls, size := 12_000, 10_000
	if race {
		size = 1000 // memory is not checked
	}
	p := start(t, map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t)}, "limits": unreadLimits}, options{deaf: true})
	p.send("0", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`)
	var written atomic.Int64
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := range calls {
			line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, i+1, execParams("a", "large", fmt.Sprintf(`{"bytes":%d}`, size)))
			if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
				t.Error(err)
				return
			}
			written.Add(1)
		}
	})
	stalled(t, &written)
	if n := written.Load(); n == int64(calls) {
		t.Error("mcpx has read all calls, though no answer was read")
	}
	answers := map[string]int{}
	lines := bufio.NewReader(p.out)
	for range calls + 1 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		m := parse(line)
		answers[string(m.ID)]++
		if string(m.ID) != "0" && len(textOf(t, string(m.Result), false)) != size {
			t.Fatalf("answer %s: %s", m.ID, clip(line))
		}
	}
	writing.Wait()
	if len(answers) != calls+1 {
		t.Errorf("%d of %d requests were answered", len(answers), calls+1)
	}
	p.staysSmall(hostileMiB)
	p.wantCode = anyCode
	_ = p.stdin.Close()
	_, _ = io.Copy(io.Discard, p.out)
}

// TestUnreadAnswersOfLegacySSE: when a client of legacy SSE does not read its stream, its
// posts wait until it does.
func TestUnreadAnswersOfLegacySSE(t *testing.T) {
	calls, size := 150, 1_000_000
	if race {
		calls = 60 // memory is not checked
	}
	s := serveHTTP(t, map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t)}, "limits": unreadLimits}, options{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewReader(answer.Body)
	next := func() string {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				return strings.TrimSpace(data)
			}
		}
	}
	c := s.caller(next())
	c.deliver(initializeLine("2024-11-05", "{}"))
	next()
	c.deliver(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var accepted atomic.Int64
	var posting sync.WaitGroup
	for range calls {
		posting.Go(func() {
			x := c.sendRequest("tools/call", execParams("a", "large", fmt.Sprintf(`{"bytes":%d}`, size)))
			x.waitEnd()
			if x.status != http.StatusAccepted {
				t.Errorf("status %d, %s", x.status, x.body)
			}
			accepted.Add(1)
		})
	}
	stalled(t, &accepted)
	if n := accepted.Load(); n == int64(calls) {
		t.Error("mcpx has accepted all calls, though no answer was read")
	}
	answers := map[string]int{}
	for range calls {
		m := parse(next())
		answers[string(m.ID)]++
		if len(textOf(t, string(m.Result), false)) != size {
			t.Fatalf("answer %s: %s", m.ID, clip(m.line))
		}
	}
	posting.Wait()
	if len(answers) != calls {
		t.Errorf("%d of %d calls were answered", len(answers), calls)
	}
	s.staysSmall(hostileMiB)
}

// TestUnreadLongAnswers: long responses that a client on stdio does not read are kept in files.
// They take little memory, however many calls run, and arrive unchanged.
func TestUnreadLongAnswers(t *testing.T) {
	const calls, size = 120, 1_000_000
	limits := map[string]any{"result_tokens": 0, "unread_bytes": 2 << 20}
	p := start(t, map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t, "-count-calls")}, "limits": limits}, options{deaf: true})
	p.send("0", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`)
	for i := range calls { // fewer than may run at a time: each is sent before any answer is read
		p.send(strconv.Itoa(i+1), "tools/call", execParams("a", "large", fmt.Sprintf(`{"bytes":%d}`, size+i+1)))
	}
	var text strings.Builder
	for i := 0; text.Len() < size+calls; i++ {
		fmt.Fprintf(&text, "a line of a large result, number %d\n", i)
	}
	waitForDisk(t, p, calls*size*3/4)
	p.staysSmall(hostileMiB)
	lines := bufio.NewReader(p.out)
	seen := map[string]bool{}
	for range calls + 1 {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d answers: %v", len(seen), err)
		}
		m := parse(line)
		seen[string(m.ID)] = true
		if n, _ := strconv.Atoi(string(m.ID)); n > 0 && textOf(t, string(m.Result), false) != text.String()[:size+n] {
			t.Fatalf("answer %s: %s", m.ID, clip(line))
		}
	}
	if len(seen) != calls+1 {
		t.Errorf("%d of %d requests were answered", len(seen), calls+1)
	}
	p.staysSmall(hostileMiB)
	p.wantCode = anyCode
	_ = p.stdin.Close()
	_, _ = io.Copy(io.Discard, p.out)
}

// waitForDisk waits until mcpx has that many bytes in files without a name. On other systems
// than Linux, it does not wait.
func waitForDisk(t *testing.T, p *process, want int) {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid)
	if _, err := os.Stat(folder); err != nil {
		return
	}
	eventually(t, "the answers are in files", func() (string, bool) {
		files, _ := filepath.Glob(folder + "/*")
		size := 0
		for _, f := range files {
			name, _ := os.Readlink(f)
			if info, err := os.Stat(f); err == nil && strings.Contains(name, "mcpx-unread-") && strings.HasSuffix(name, " (deleted)") {
				size += int(info.Size())
			}
		}
		return fmt.Sprint(size), size >= want
	})
}

// TestTooManyCalls: over HTTP a call beyond limits.calls_per_client gets 429. Other
// sessions, and the client's own answers, are not affected.
func TestTooManyCalls(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t, "-full")}, "limits": map[string]any{"calls_per_client": 3}}, options{})
	c, other := s.client("/mcp"), s.client("/mcp")
	var waiting []*exchange
	for range 3 {
		x := c.sendRequest("tools/call", execParams("a", "ask", `{"method":"roots/list"}`))
		x.next(0) // the question
		waiting = append(waiting, x)
	}
	x := c.sendRequest("tools/call", execParams("a", "pid", ""))
	x.waitEnd()
	if x.status != http.StatusTooManyRequests || x.header.Get("Retry-After") == "" || !strings.Contains(x.body, "limits.calls_per_client") {
		t.Errorf("status %d, Retry-After %q, %s", x.status, x.header.Get("Retry-After"), x.body)
	}
	other.exec("a", "pid", "")
	c.deliver(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}`, waiting[0].next(0).ID))
	waiting[0].answer()
	c.exec("a", "pid", "")
	for _, x := range waiting[1:] {
		c.deliver(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}`, x.next(0).ID))
		x.answer()
	}
}

// TestAnswersAreReadAtTheLimit: when a client on stdio has as many calls in flight as it
// may, and more are queued, its answers to questions are still read, and a queued call
// can be canceled.
func TestAnswersAreReadAtTheLimit(t *testing.T) {
	t.Parallel()
	const most = 4
	p := start(t, map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t, "-full", "-count-calls")}, "limits": map[string]any{"calls_per_client": most}}, options{})
	p.initializeAs("2025-11-25", allCapabilities)
	var asking, after []string
	for range most {
		asking = append(asking, p.nextID())
		p.send(asking[len(asking)-1], "tools/call", execParams("a", "ask", `{"method":"roots/list"}`))
	}
	questions := p.waitReceived("roots/list", most)
	for range 2 * most {
		after = append(after, p.nextID())
		p.send(after[len(after)-1], "tools/call", execParams("a", "calls", ""))
	}
	canceled := after[0]
	p.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%s}`, canceled))
	for _, q := range questions {
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[]}}`, q.ID))
	}
	for _, id := range asking {
		textOf(t, string(p.answer(id).Result), false)
	}
	seen := map[string]bool{}
	for _, id := range after[1:] {
		seen[textOf(t, string(p.answer(id).Result), false)] = true
	}
	if want := fmt.Sprint(most + len(after) - 1); !seen[want] || len(seen) != len(after)-1 {
		t.Errorf("the upstream counted %v, want %s at last: the canceled call must not reach it", seen, want)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.answers[canceled]) > 0 {
		t.Error("the canceled call was answered")
	}
}
