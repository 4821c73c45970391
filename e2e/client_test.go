package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"
)

// write sends one line.
func (p *process) write(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatalf("write: %v; stderr:\n%s", err, clip(p.errors()))
	}
}

// send sends a request; params may be empty.
func (p *process) send(id, method, params string) {
	p.t.Helper()
	if params != "" {
		params = `,"params":` + params
	}
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q%s}`, id, method, params))
}

// notify sends a notification.
func (p *process) notify(method, params string) {
	p.t.Helper()
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

// answer waits for the answer to a request.
func (p *process) answer(id string) message {
	p.t.Helper()
	if !p.wait(patience, func() bool { return len(p.answers[id]) > 0 }) {
		p.t.Fatalf("no answer to %s; stderr:\n%s", id, clip(p.errors()))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answers[id][0]
}

// nextID returns an unused ID.
func (p *process) nextID() string { return strconv.FormatInt(1000+p.lastID.Add(1), 10) }

// request sends a request and waits for its answer.
func (p *process) request(method, params string) message {
	p.t.Helper()
	id := p.nextID()
	p.send(id, method, params)
	return p.answer(id)
}

// result is request, which must succeed.
func (p *process) result(method, params string) string {
	p.t.Helper()
	m := p.request(method, params)
	if m.Error != nil {
		p.t.Fatalf("%s %s: error %s", method, clip(params), m.Error)
	}
	return string(m.Result)
}

// initialize performs the handshake.
func (p *process) initialize() string {
	p.t.Helper()
	result := p.result("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`)
	p.notify("notifications/initialized", "{}")
	return result
}

// execParams returns the params of a call to exec; arguments may be empty.
func execParams(server, tool, arguments string) string {
	if arguments != "" {
		arguments = `,"arguments":` + arguments
	}
	return fmt.Sprintf(`{"name":"exec","arguments":{"server_name":%q,"tool_name":%q%s}}`, server, tool, arguments)
}

// exec calls an upstream's tool and returns the only text of its result.
func (p *process) exec(server, tool, arguments string) string {
	p.t.Helper()
	return p.text(execParams(server, tool, arguments), false)
}

// execError is exec for a call that must fail.
func (p *process) execError(server, tool, arguments string) string {
	p.t.Helper()
	return p.text(execParams(server, tool, arguments), true)
}

// inspect calls inspect; tool may be empty.
func (p *process) inspect(server, tool string) string {
	p.t.Helper()
	return p.text(inspectParams(server, tool), false)
}

// inspectError is inspect for a call that must fail.
func (p *process) inspectError(server, tool string) string {
	p.t.Helper()
	return p.text(inspectParams(server, tool), true)
}

// inspectParams returns the params of a call to inspect; tool may be empty.
func inspectParams(server, tool string) string {
	if tool != "" {
		tool = fmt.Sprintf(`,"tool_name":%q`, tool)
	}
	return fmt.Sprintf(`{"name":"inspect","arguments":{"server_name":%q%s}}`, server, tool)
}

// text calls a tool and returns the only text of its result. isError says whether the
// result must be an error.
func (p *process) text(params string, isError bool) string {
	p.t.Helper()
	return textOf(p.t, p.result("tools/call", params), isError)
}

// textOf returns the only text of a result of tools/call.
func textOf(t *testing.T, result string, isError bool) string {
	t.Helper()
	var r struct {
		Content []struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	}
	if err := json.Unmarshal([]byte(result), &r); err != nil {
		t.Fatalf("result %s: %v", clip(result), err)
	}
	if len(r.Content) != 1 || r.Content[0].Type != "text" || r.Content[0].Text == nil || r.IsError != isError {
		t.Fatalf("result %s; want one text with isError %t", clip(result), isError)
	}
	return *r.Content[0].Text
}

// underWay waits until an upstream with -count-calls has received n calls, its own not
// counted.
func (p *process) underWay(server string, n int) {
	p.t.Helper()
	own := 0
	eventually(p.t, fmt.Sprintf("calls that %s has got, want %d", server, n), func() (string, bool) {
		got := p.exec(server, "calls", "")
		own++
		calls, err := strconv.Atoi(got)
		return got, err == nil && calls-own >= n
	})
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, state func() (description string, ok bool)) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	limit := time.After(patience)
	for {
		description, ok := state()
		if ok {
			return
		}
		select {
		case <-poll.C:
		case <-limit:
			t.Fatalf("%s: %s", what, description)
		}
	}
}

// within fails the test if something took too long.
func within(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	if took > limit {
		t.Errorf("%s took %s, want at most %s", what, took, limit)
	}
}

// received returns the requests and notifications of a method so far.
func (p *process) received(method string) (messages []message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.all {
		if m.Method == method {
			messages = append(messages, m)
		}
	}
	return messages
}

// waitReceived waits until a method has come n times.
func (p *process) waitReceived(method string, n int) []message {
	p.t.Helper()
	count := 0
	if !p.wait(patience, func() bool {
		count = 0
		for _, m := range p.all {
			if m.Method == method {
				count++
			}
		}
		return count >= n
	}) {
		p.t.Fatalf("%s came %d times, want %d; stderr:\n%s", method, count, n, clip(p.errors()))
	}
	return p.received(method)
}

// listUntil lists again after every list_changed until the list has a text.
func (p *process) listUntil(list, part string) {
	p.t.Helper()
	method := "notifications/" + list + "/list_changed"
	for heard := len(p.received(method)); ; heard = len(p.received(method)) {
		if got := p.result(list+"/list", "{}"); strings.Contains(got, part) {
			return
		}
		p.waitReceived(method, heard+1)
	}
}

// initializeAs performs the handshake with a revision and capabilities.
func (p *process) initializeAs(revision, capabilities string) {
	p.t.Helper()
	p.result("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"e2e","version":"1"}}`, revision, capabilities))
	p.notify("notifications/initialized", "{}")
}

// call calls a tool of flat mode and returns the only text of its result.
func (p *process) call(name, arguments string) string {
	p.t.Helper()
	return p.text(fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments), false)
}

// stderrCount returns how often a text is on stderr.
func (p *process) stderrCount(part string) int { return strings.Count(p.errors(), part) }

// waitStderrCount waits until a text is on stderr n times.
func (p *process) waitStderrCount(part string, n int) {
	p.t.Helper()
	if !p.wait(patience, func() bool { return strings.Count(p.stderr.String(), part) >= n }) {
		p.t.Fatalf("stderr has %q %d times, want %d:\n%s", part, p.stderrCount(part), n, clip(p.errors()))
	}
}
