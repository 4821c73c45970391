package front

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/internal/rawjson"
	"mcpx/internal/unread"
)

// streamBytes is what a client may leave unread in these tests.
const streamBytes = defaultUnread

// newTestStream returns a stream of a client that may leave streamBytes unread.
func newTestStream() *stream {
	return newStream(defaultTimes, unread.NewBudget(streamBytes).NewAccount(streamBytes, nil))
}

// popAll reads a stream that is not being served.
func popAll(s *stream) (texts []string) {
	for {
		messages, _ := s.pop()
		if len(messages) == 0 {
			return texts
		}
		for i := range messages {
			texts = append(texts, string(messages[i].Text()))
		}
		release(messages)
	}
}

// events reads the data of server-sent events.
func events(r *http.Response) *bufio.Scanner {
	lines := bufio.NewScanner(r.Body)
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		i := bytes.Index(data, []byte("\n\n"))
		if i < 0 {
			if atEOF {
				return len(data), nil, nil
			}
			return 0, nil, nil
		}
		_, event, _ := bytes.Cut(data[:i], []byte("\ndata: "))
		return i + 2, event, nil
	})
	return lines
}

func TestACallHasItsOwnStream(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one"))
	id := s.open(t, `{"sampling":{}}`)
	r := s.do(t, "POST", "/mcp", request("tools/call", exec("progress", `{"steps":3}`)), sessionHeader, id)
	if kind := r.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("Content-Type %s", kind)
	}
	var got []string
	for e := events(r); e.Scan(); {
		got = append(got, e.Text())
	}
	if len(got) != 4 || !strings.Contains(got[0], `"progressToken":"tok","progress":1`) || !strings.Contains(got[3], `"result"`) {
		t.Errorf("the stream has %q", got)
	}

	// What the upstream asks goes on the stream of the call, without any other.
	r = s.do(t, "POST", "/mcp", request("tools/call", exec("ask", `{"method":"sampling/createMessage"}`)), sessionHeader, id)
	e := events(r)
	if !e.Scan() || !strings.Contains(e.Text(), `"method":"sampling/createMessage"`) {
		t.Fatalf("the stream has %s", e.Text())
	}
	asked := string(rawjson.Get(e.Bytes(), "id"))
	if got := whole(t, s.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":`+asked+`,"result":{"x":1}}`, sessionHeader, id)); got != "202 " {
		t.Errorf("the answer is answered with %s", got)
	}
	if !e.Scan() || !strings.Contains(e.Text(), `{\"x\":1}`) {
		t.Errorf("then the stream has %s", e.Text())
	}
}

func TestStandingStream(t *testing.T) {
	s := serveHTTP(t, upstream(t, "one", "-full"))
	id := s.open(t, "{}")
	r := s.do(t, "GET", "/mcp", "", sessionHeader, id)
	e := events(r)
	if got := whole(t, s.do(t, "POST", "/mcp", request("resources/subscribe", `{"uri":"test://one"}`), sessionHeader, id)); got != `200 {"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Fatal(got)
	}
	other := s.open(t, "{}")
	s.do(t, "POST", "/mcp", request("tools/call", exec("say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`)), sessionHeader, other)
	for e.Scan() && !strings.Contains(e.Text(), "resources/updated") {
	}
	if want := `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://one"}}`; e.Text() != want {
		t.Errorf("the stream has %s, want %s", e.Text(), want)
	}
	// A second one takes the place of the first.
	again := s.do(t, "GET", "/mcp", "", sessionHeader, id)
	for e.Scan() {
	}
	s.do(t, "DELETE", "/mcp", "", sessionHeader, id)
	for e := events(again); e.Scan(); {
	}
}

func TestStreamIsBounded(t *testing.T) {
	s := newTestStream()
	if err := s.Send(make([]byte, streamBytes)); err != nil {
		t.Fatal(err)
	}
	if err := s.Send([]byte("x")); err == nil {
		t.Error("more than the bound is taken")
	}
	s.end([]byte("last"))
	s.end([]byte("again"))
	for i, want := range []int{streamBytes, len("last")} {
		if messages, ended := s.pop(); len(messages) != 1 || messages[0].Len() != want || ended != (i == 1) {
			t.Errorf("%d messages, ended %v", len(messages), ended)
		}
	}
	if err := s.Send([]byte("x")); err == nil {
		t.Error("a message after the end is taken")
	}
}

// TestUnreadResponses: responses that are kept in files are written like others, as events or
// as one JSON message, and then their memory and files are free.
func TestUnreadResponses(t *testing.T) {
	var unreadBytes int
	account := unread.NewBudget(300_000).NewAccount(1000, func(bytes int) { unreadBytes += bytes })
	short, long := "{\n}\r", `{"text":"`+strings.Repeat("x", 700_000)+"\"\n}"
	get := newStream(defaultTimes, account)
	var events string
	for _, response := range []string{long, short, long} {
		get.sendResponse([]byte(response))
		events += "event: message\ndata: " + strings.NewReplacer("\n", " ", "\r", " ").Replace(response) + "\n\n"
	}
	get.end(nil)
	post := newStream(defaultTimes, account)
	post.end([]byte(long))
	if want := 3*len(long) + len(short); unreadBytes != want {
		t.Errorf("%d bytes are unread, want %d", unreadBytes, want)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/mcp", nil)
	w := httptest.NewRecorder()
	get.serve(w, r)
	if got := w.Body.String(); got != events {
		t.Errorf("the events have %d bytes, want %d", len(got), len(events))
	}
	w = httptest.NewRecorder()
	post.respond(w, r)
	if got := w.Body.String(); got != long || w.Header().Get("Content-Length") != strconv.Itoa(len(long)) {
		t.Errorf("the JSON message has %d bytes and Content-Length %s, want %d", len(got), w.Header().Get("Content-Length"), len(long))
	}
	late := newStream(defaultTimes, account)
	late.close()
	late.sendResponse([]byte(long))
	late.end([]byte(short))
	if unreadBytes != 0 {
		t.Errorf("%d bytes are still unread", unreadBytes)
	}
}

// TestACallKeepsToItsStream: a message without room on the stream of its call goes to
// no other stream while the call is in flight.
func TestACallKeepsToItsStream(t *testing.T) {
	n := one(t, newSessions(config.Limits{Sessions: 10, SessionIdle: time.Hour}))
	getStream, own := newTestStream(), newTestStream()
	n.setStream(getStream)
	c := call{client: n.client}
	if err := own.Send(make([]byte, streamBytes)); err != nil {
		t.Fatal(err)
	}
	if err := c.send(own, []byte("one too many")); err == nil {
		t.Error("it was sent")
	}
	if got := popAll(getStream); len(got) != 0 {
		t.Errorf("the GET stream has %q", got)
	}
	own.close()
	if err := c.send(own, []byte("after the end")); err != nil {
		t.Error(err)
	}
	if got := popAll(getStream); len(got) != 1 {
		t.Errorf("the GET stream has %q", got)
	}
}
