package httpfront

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/server"
	"mcpx/server/access"
)

// brief is a time that a test can wait for, and in which a client that does its
// part does it, on a loaded machine too.
const brief = time.Second

// impatient are times of which a client's part is brief.
func impatient() times {
	t := defaultTimes
	t.header, t.body, t.write = brief, brief, brief
	return t
}

// long is more than all of them.
const long = 3*brief + brief/2

// patience is what anything that must happen may take on a loaded machine.
const patience = 20 * time.Second

// raw opens a connection and writes the start of a request.
func (l *listening) raw(t *testing.T, text string) *net.TCPConn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// ends reads a connection until the server closes it.
func ends(t *testing.T, c net.Conn) string {
	t.Helper()
	text, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection stays open; it has %.200q", text)
	}
	return string(text)
}

// TestSlowRequests: a client that sends a header or a body slowly does not keep a
// connection.
func TestSlowRequests(t *testing.T) {
	limits := impatient()
	limits.write = patience // an answer is not cut short by a machine that stood still
	s := listenHTTP(t, &HTTP{times: limits, Guard: access.Guard{Server: config.Server{Token: "tok"}}})
	const post = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
	for _, v := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"a part of the header", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ", ""},
		{"a part of the body", post + "Authorization: Bearer tok\r\n\r\n{", "HTTP/1.1 408 "},
		{"a part of the body of a stranger", post + "\r\n{", "HTTP/1.1 401 "},
		{"a part of the body elsewhere", strings.Replace(post, "POST /mcp", "POST /health", 1) + "\r\n{", "HTTP/1.1 405 "},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			if got := ends(t, s.raw(t, v.text)); !strings.HasPrefix(got, v.want) || v.want == "" && got != "" {
				t.Errorf("got %q, want %q", got, v.want)
			}
			if took := time.Since(begin); took < brief/2 {
				t.Errorf("it was not given its time, but %s", took)
			}
		})
	}
}

// TestLongCallsOutliveTheTimes: the time limits of a request do not limit its call.
func TestLongCallsOutliveTheTimes(t *testing.T) {
	s := listenHTTP(t, &HTTP{times: impatient()}, upstream(t, "one")) // the first sign of life is far off: the answer comes as one message
	id := s.open(t, "{}")
	call := request("tools/call", exec("sleep", fmt.Sprintf(`{"ms":%d,"text":"slept"}`, long.Milliseconds())))
	for _, header := range [][]string{{sessionHeader, id}, {"Mcp-Method", "tools/call", "Mcp-Name", "exec"}} {
		body := call
		if header[0] != sessionHeader {
			body = strings.Replace(call, `"_meta":{"progressToken":"tok"}`, meta("{}", ""), 1)
		}
		t.Run(header[0], func(t *testing.T) {
			t.Parallel()
			r := s.do(t, "POST", "/mcp", body, header...)
			if got := whole(t, r); !strings.Contains(got, `"text":"slept"`) || r.Header.Get("Content-Type") != "application/json" {
				t.Error(got)
			}
		})
	}
}

// TestQuietStreamsStay: a stream without messages stays open and gets comments.
func TestQuietStreamsStay(t *testing.T) {
	limits := impatient()
	limits.alive = brief / 50
	s := listenHTTP(t, &HTTP{times: limits}, upstream(t, "one"))
	id := s.open(t, "{}")
	for path, header := range map[string][]string{"/mcp": {sessionHeader, id}, "/sse": nil} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			r := s.do(t, "GET", path, "", header...)
			lines := bufio.NewScanner(r.Body)
			begin, signs := time.Now(), 0
			for time.Since(begin) < long && lines.Scan() {
				if lines.Text() == ": alive" {
					signs++
				}
			}
			if took := time.Since(begin); signs < 10 || took < long {
				t.Errorf("%d signs of life in %s, then %v", signs, took, lines.Err())
			}
		})
	}
}

// TestAClientThatDoesNotRead: its stream is closed, and other clients notice nothing.
func TestAClientThatDoesNotRead(t *testing.T) {
	limits := defaultTimes
	limits.write = brief
	s := listenHTTP(t, &HTTP{times: limits}, upstream(t, "one", "-full"))
	deaf, other := s.open(t, "{}"), s.open(t, "{}")
	c := s.raw(t, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: "+deaf+"\r\n\r\n")
	if err := c.SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if got := whole(t, s.do(t, "POST", "/mcp", request("resources/subscribe", `{"uri":"test://one"}`), sessionHeader, deaf)); !strings.HasPrefix(got, "200 ") {
		t.Fatal(got)
	}
	n := s.sessions.byID[deaf]
	listens := func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.getStream != nil
	}
	eventually(t, "the stream opens", listens)
	update := `{"uri":"test://one","pad":"` + strings.Repeat("x", 100_000) + `"}`
	flood := request("tools/call", exec("say", `{"method":"notifications/resources/updated","params":[`+update+strings.Repeat(","+update, 9)+`]}`))
	begin := time.Now()
	for listens() {
		asked := time.Now()
		if got := whole(t, s.do(t, "POST", "/mcp", flood, sessionHeader, other)); !strings.Contains(got, "said 10") {
			t.Fatalf("the other client got %.200s", got)
		}
		if took := time.Since(asked); took > patience {
			t.Errorf("the other client waited %s", took)
		}
		if time.Since(begin) > 3*patience { // what is on its way has to fill first
			t.Fatal("the client that does not read keeps its stream")
		}
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(c, status); err != nil || string(status) != "HTTP/1.1 200" {
		t.Errorf("the stream began with %q, %v", status, err)
	}
	if got := whole(t, s.do(t, "POST", "/mcp", request("ping", ""), sessionHeader, deaf)); got != `200 {"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("its session answers %s", got)
	}
}

// TestAPageThatIsNotRead: a response that is not a stream has a time limit, too.
func TestAPageThatIsNotRead(t *testing.T) {
	ended := make(chan error, 1)
	s := listenHTTP(t, &HTTP{times: impatient(), Routes: []Route{{Pattern: "GET /endless", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var err error
		for chunk := bytes.Repeat([]byte("x"), 1<<20); err == nil; {
			_, err = w.Write(chunk)
		}
		ended <- err
	})}}})
	s.raw(t, "GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the answer is never given up")
	}
}

// TestCallsWithoutASessionAreCanceledAtTheEnd: they get the drain time, and then the
// reason.
func TestCallsWithoutASessionAreCanceledAtTheEnd(t *testing.T) {
	for _, v := range []struct {
		name, params string
		stateless    bool
		header       []string
	}{
		{"stateless", exec("sleep", `{"ms":3600000}`), true, nil},
		{"2026-07-28", strings.Replace(exec("sleep", `{"ms":3600000}`), `"_meta":{"progressToken":"tok"}`, meta("{}", ""), 1), false, []string{"Mcp-Method", "tools/call", "Mcp-Name", "exec"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			limits := defaultTimes
			limits.alive, limits.drain, limits.cancel = 20*time.Millisecond, 500*time.Millisecond, patience
			s := listenHTTP(t, &HTTP{times: limits, Stateless: v.stateless}, upstream(t, "one"))
			s.do(t, "GET", "/health", "") // it runs
			s.registry.Settled(t.Context(), "one")
			r := s.do(t, "POST", "/mcp", request("tools/call", v.params), v.header...) // the first sign of life begins the answer
			begin := time.Now()
			s.stop()
			got := whole(t, r)
			if took := time.Since(begin); took < limits.drain || took > patience/2 {
				t.Errorf("the call ended after %s", took)
			}
			if !strings.Contains(got, server.ErrStopping.Error()) {
				t.Errorf("the call got %s, want the reason %q", got, server.ErrStopping)
			}
			if err := s.wait(); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
}
