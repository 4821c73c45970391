package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// site is a run of mcpx that serves over HTTP.
type site struct {
	*process
	url  string // without a path
	http *http.Client
	made atomic.Int64 // number of exchanges
}

var urlInLog = regexp.MustCompile(`url"?[=:]"?(http://[^/]+)/mcp/`)

// serveHTTP runs mcpx-sse on a free port.
func serveHTTP(t *testing.T, config any, o options) *site {
	t.Helper()
	o.http = true
	s := &site{process: start(t, config, o)}
	if !s.wait(patience, func() bool {
		if found := urlInLog.FindStringSubmatch(s.stderr.String()); found != nil {
			s.url = found[1]
		}
		return s.url != ""
	}) {
		t.Fatalf("mcpx does not say where to connect; stderr:\n%s", clip(s.errors()))
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	s.http = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	return s
}

// exchange is an HTTP request and its answer: a message, or a stream of messages.
type exchange struct {
	t       *testing.T
	number  int     // tells the streams of a run apart
	request message // what was posted
	drop    context.CancelFunc
	begun   chan struct{} // closed when the header of the answer has come
	ended   chan struct{} // closed when the answer has ended

	// Valid after begun is closed.
	status int
	header http.Header
	err    error

	mu       sync.Mutex
	body     string
	endpoint string
	messages []message // without list changes, which starting upstreams cause
	changed  chan struct{}
}

// send starts a request. It returns when the request is written or has failed.
func (s *site) send(r *http.Request, body string, onMessage func(m message)) *exchange {
	ctx, drop := context.WithCancel(context.Background())
	x := &exchange{t: s.t, number: int(s.made.Add(1)), request: parse(body), drop: drop, begun: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{})}
	s.t.Cleanup(drop)
	written := make(chan struct{})
	var once sync.Once
	done := func() { once.Do(func() { close(written) }) }
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { done() }})
	go func() {
		defer close(x.ended)
		defer done()
		answer, err := s.http.Do(r.WithContext(ctx))
		if err != nil {
			x.err = err
			close(x.begun)
			return
		}
		x.status, x.header = answer.StatusCode, answer.Header
		close(x.begun)
		x.read(answer.Body, onMessage)
		_ = answer.Body.Close()
	}()
	<-written
	return x
}

// read collects the messages of the answer until it ends.
func (x *exchange) read(body io.Reader, onMessage func(m message)) {
	if x.header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(body)
		x.mu.Lock()
		x.body = string(text)
		x.mu.Unlock()
		if strings.HasPrefix(x.header.Get("Content-Type"), "application/json") {
			x.take("message", string(text), onMessage)
		}
		return
	}
	lines := bufio.NewReader(body)
	var name, data string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case field == "event":
			name = value
		case field == "data":
			data = value
		case line == "\n" && data != "":
			x.take(name, data, onMessage)
			name, data = "", ""
		}
	}
}

// take records an event.
func (x *exchange) take(name, data string, onMessage func(m message)) {
	m := parse(data)
	m.stream = x.number
	x.mu.Lock()
	switch {
	case name == "message" && skippable(m):
	case name == "message":
		x.messages = append(x.messages, m)
	case name == "endpoint":
		x.endpoint = data
	default:
		x.t.Errorf("an event %q: %s", name, clip(data))
	}
	close(x.changed)
	x.changed = make(chan struct{})
	x.mu.Unlock()
	if onMessage != nil && name == "message" {
		onMessage(m)
	}
}

// parse reads a message, as far as it is valid.
func parse(line string) message {
	m := message{line: line}
	_ = json.Unmarshal([]byte(line), &m)
	return m
}

// memberOf returns a member of an object as written.
func memberOf(object json.RawMessage, key string) string {
	var o map[string]json.RawMessage
	_ = json.Unmarshal(object, &o)
	return string(o[key])
}

// wait waits until done, which is called with the mutex held, returns true.
func (x *exchange) wait(what string, done func() bool) {
	x.t.Helper()
	limit := time.After(patience)
	for {
		x.mu.Lock()
		ok, changed := done(), x.changed
		x.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
			continue
		case <-x.ended:
		case <-limit:
		}
		x.mu.Lock()
		ok = done()
		x.mu.Unlock()
		if !ok {
			x.t.Fatalf("%s: no %s; status %d, %v, messages %q", clip(x.request.line), what, x.status, x.err, x.lines())
		}
		return
	}
}

// next waits for the nth message of the stream.
func (x *exchange) next(n int) message {
	x.t.Helper()
	x.wait(fmt.Sprintf("message %d", n), func() bool { return len(x.messages) > n })
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.messages[n]
}

// lines returns the messages so far.
func (x *exchange) lines() (lines []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range x.messages {
		lines = append(lines, m.line)
	}
	return lines
}

// waitBegun waits for the header of the answer.
func (x *exchange) waitBegun() {
	x.t.Helper()
	waitFor(x.t, "an answer to "+clip(x.request.line), x.begun)
	if x.err != nil {
		x.t.Fatalf("%s: %v", clip(x.request.line), x.err)
	}
}

// waitEnd waits for the end of the answer.
func (x *exchange) waitEnd() {
	x.t.Helper()
	waitFor(x.t, "the end of the answer to "+clip(x.request.line), x.ended)
}

// waitFor waits until a channel is closed.
func waitFor(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
}

// answer waits for the answer to the request, which is the last message of the stream.
func (x *exchange) answer() message {
	x.t.Helper()
	x.waitEnd()
	x.check()
	lines := x.lines()
	if len(lines) == 0 {
		x.t.Fatalf("%s: no answer; status %d, %v, body %s", clip(x.request.line), x.status, x.err, clip(x.body))
	}
	return parse(lines[len(lines)-1])
}

// check checks an ended answer: the response comes last, it has the ID of the request,
// and all progress has the token of the request.
func (x *exchange) check() {
	x.t.Helper()
	token := memberOf(json.RawMessage(memberOf(x.request.Params, "_meta")), "progressToken")
	for i, m := range x.messages {
		isLast := i == len(x.messages)-1
		isAnswer := m.Method == "" && !strings.HasPrefix(m.line, "[") && m.Error == nil
		if isAnswer && (!isLast || string(m.ID) != string(x.request.ID)) {
			x.t.Errorf("message %d of the %d in answer to %s is\n%s", i, len(x.messages), clip(x.request.line), clip(m.line))
		}
		if m.Method == "notifications/progress" && memberOf(m.Params, "progressToken") != token {
			x.t.Errorf("in answer to %s comes the progress of another call:\n%s", clip(x.request.line), clip(m.line))
		}
	}
}
