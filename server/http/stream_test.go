package httpfront

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/unread"
)

// streamBytes is what a client may leave unread in these tests.
const streamBytes = defaultUnread

// newTestStream returns a stream of a client that may leave streamBytes unread.
func newTestStream() *Stream {
	return newStream(defaultTimes, unread.NewBudget(streamBytes).NewAccount(streamBytes, nil))
}

// popAll reads a stream that is not being served.
func popAll(s *Stream) (texts []string) {
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

// TestUnreadPOSTs: a POST whose response is not read takes little memory in all: for the
// connection, the goroutines and the buffers. The response itself is in a file.
func TestUnreadPOSTs(t *testing.T) {
	const posts, most = 100, 128 << 10
	long := []byte(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
	for name, first := range map[string]string{"one JSON message": "", "events": "{}"} {
		t.Run(name, func(t *testing.T) {
			account := unread.NewBudget(1000).NewAccount(1000, nil)
			dial := servePipes(t, func(w http.ResponseWriter, r *http.Request) {
				out := newStream(defaultTimes, account)
				if first != "" && out.Send([]byte(first)) != nil {
					t.Error("the first message is not sent")
				}
				out.end(bytes.Clone(long))
				out.respond(w, r)
			})
			before := memory()
			for range posts {
				c := dial()
				if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				// After this, the first piece of the response is being written.
				if _, err := io.ReadFull(c, make([]byte, 5000)); err != nil {
					t.Fatal(err)
				}
			}
			if got := (memory() - before) / posts; got > most {
				t.Errorf("each POST takes %d bytes, want at most %d", got, most)
			}
		})
	}
}

// memory returns the bytes in use, with the stacks of goroutines.
func memory() int {
	rpc.DropBuffers()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// servePipes serves HTTP on connections without buffers: each write waits until it is read. At
// the end of the test it closes the connections that dial opened.
func servePipes(t *testing.T, handler http.HandlerFunc) (dial func() net.Conn) {
	var connections sync.WaitGroup
	listener := pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			connections.Add(1)
		case http.StateClosed:
			connections.Done()
		default:
		}
	}}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(listener) })
	t.Cleanup(func() {
		close(listener.closed)
		serving.Wait()
		_ = s.Close()
		connections.Wait()
	})
	return func() net.Conn {
		client, server := net.Pipe()
		listener.accepted <- server
		return client
	}
}

// pipes is the listener of servePipes.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return &net.UnixAddr{} }

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
