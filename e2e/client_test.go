package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"
)

// write sends one line as it is.
func (p *process) write(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatalf("write: %v; stderr:\n%s", err, clip(p.errors()))
	}
}

// send sends a request; params "" is none.
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

// nextID is an id that was not used before.
func (p *process) nextID() string { return strconv.FormatInt(1000+p.lastID.Add(1), 10) }

// request sends a request and waits for its answer.
func (p *process) request(method, params string) message {
	p.t.Helper()
	id := p.nextID()
	p.send(id, method, params)
	return p.answer(id)
}

// result is request for what must succeed.
func (p *process) result(method, params string) string {
	p.t.Helper()
	m := p.request(method, params)
	if m.Error != nil {
		p.t.Fatalf("%s %s: error %s", method, clip(params), m.Error)
	}
	return string(m.Result)
}

// initialize opens the conversation as clients do.
func (p *process) initialize() string {
	p.t.Helper()
	result := p.result("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}`)
	p.notify("notifications/initialized", "{}")
	return result
}

// execParams are the params of a call of exec; arguments "" is none.
func execParams(server, tool, arguments string) string {
	if arguments != "" {
		arguments = `,"arguments":` + arguments
	}
	return fmt.Sprintf(`{"name":"exec","arguments":{"server_name":%q,"tool_name":%q%s}}`, server, tool, arguments)
}

// exec calls an upstream's tool and returns the one text of its result.
func (p *process) exec(server, tool, arguments string) string {
	p.t.Helper()
	return p.text(execParams(server, tool, arguments), false)
}

// execError is exec for what must fail.
func (p *process) execError(server, tool, arguments string) string {
	p.t.Helper()
	return p.text(execParams(server, tool, arguments), true)
}

// inspect calls inspect; tool "" is none.
func (p *process) inspect(server, tool string) string {
	p.t.Helper()
	return p.text(inspectParams(server, tool), false)
}

// inspectError is inspect for what must fail.
func (p *process) inspectError(server, tool string) string {
	p.t.Helper()
	return p.text(inspectParams(server, tool), true)
}

func inspectParams(server, tool string) string {
	if tool != "" {
		tool = fmt.Sprintf(`,"tool_name":%q`, tool)
	}
	return fmt.Sprintf(`{"name":"inspect","arguments":{"server_name":%q%s}}`, server, tool)
}

// text calls a tool and returns the one text of its result, which must be an
// error or not.
func (p *process) text(params string, isError bool) string {
	p.t.Helper()
	return textOf(p.t, p.result("tools/call", params), isError)
}

// textOf is the one text of a result of tools/call.
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

// underWay waits until an upstream, started with -count-calls, has got n more
// calls than those of this function.
func (p *process) underWay(server string, n int) {
	p.t.Helper()
	own := 0
	settled(p.t, fmt.Sprintf("calls that %s has got, want %d", server, n), func() (string, bool) {
		got := p.exec(server, "calls", "")
		own++
		calls, err := strconv.Atoi(got)
		return got, err == nil && calls-own >= n
	})
}

// settled waits until a state is as it must be.
func settled(t *testing.T, what string, state func() (description string, ok bool)) {
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

// within fails the test if something took longer than it may.
func within(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	if took > limit {
		t.Errorf("%s took %s, want at most %s", what, took, limit)
	}
}

// count is the number of answers so far.
func (p *process) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.order)
}

// errorsSince lists id and code of the answers after the first n, but for one id.
func (p *process) errorsSince(n int, but string) (list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.order[n:] {
		if string(m.ID) == but {
			continue
		}
		var e struct {
			Code int `json:"code"`
		}
		_ = json.Unmarshal(m.Error, &e)
		list = append(list, fmt.Sprintf("%s %d", m.ID, e.Code))
	}
	return list
}
