package e2e

import (
	"fmt"
	"strings"
)

// told are the requests and notifications of a method that came, as they came.
func (p *process) told(method string) (messages []message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.all {
		if m.Method == method {
			messages = append(messages, m)
		}
	}
	return messages
}

// waitTold waits until a method has come n times.
func (p *process) waitTold(method string, n int) []message {
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
	return p.told(method)
}

// until lists again whenever the client is told that the list has changed, until
// it has a text. What was told before the list changed cannot end the wait.
func (p *process) until(list, part string) {
	p.t.Helper()
	method := "notifications/" + list + "/list_changed"
	for heard := len(p.told(method)); ; heard = len(p.told(method)) {
		if got := p.result(list+"/list", "{}"); strings.Contains(got, part) {
			return
		}
		p.waitTold(method, heard+1)
	}
}

// initializeAs opens the conversation with a revision and capabilities.
func (p *process) initializeAs(revision, capabilities string) {
	p.t.Helper()
	p.result("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"e2e","version":"1"}}`, revision, capabilities))
	p.notify("notifications/initialized", "{}")
}

// call calls a tool by its name on the front and returns the one text of its result.
func (p *process) call(name, arguments string) string {
	p.t.Helper()
	return p.text(fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, arguments), false)
}

// stderrCount is how often a text is on stderr.
func (p *process) stderrCount(part string) int { return strings.Count(p.errors(), part) }

// waitStderrCount waits until a text is on stderr n times.
func (p *process) waitStderrCount(part string, n int) {
	p.t.Helper()
	if !p.wait(patience, func() bool { return strings.Count(p.stderr.String(), part) >= n }) {
		p.t.Fatalf("stderr has %q %d times, want %d:\n%s", part, p.stderrCount(part), n, clip(p.errors()))
	}
}
