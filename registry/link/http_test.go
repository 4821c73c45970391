package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/internal/rpc"
)

// TestGETStreamIsOpenedAgain: each row has the responses of an upstream to GET,
// in turn. After the last one the link gives up.
func TestGETStreamIsOpenedAgain(t *testing.T) {
	type answer struct {
		status int
		body   string
	}
	event := func(id int) string { return fmt.Sprintf("id: %d\ndata: {\"n\":%d}\n\n", id, id) }
	for _, row := range []struct {
		name    string
		answers []answer
		asked   []string // when, and after which event
		heard   []string
		ended   error // why the link was; nil: it was not
	}{
		{name: "it has none", answers: []answer{{405, ""}}, asked: []string{"0s"}},
		{name: "it answers with something else", answers: []answer{{200, "{}"}}, asked: []string{"0s"}},
		{
			name:    "a proxy answers with something else",
			answers: []answer{{200, event(1)}, {200, "{}"}, {200, event(2)}, {405, ""}, {405, ""}},
			asked:   []string{"0s", "5s 1", "10s 1", "15s 2", "20s"},
			heard:   []string{`{"n":1}`, `{"n":2}`},
		},
		{name: "it never had one", answers: []answer{{503, ""}}, asked: []string{"0s"}},
		{
			name:    "it ends",
			answers: []answer{{200, "data: {\"n\":1}\n\n"}, {200, "data: {\"n\":2}\n\n"}, {200, ""}, {405, ""}},
			asked:   []string{"0s", "5s", "10s", "15s"},
			heard:   []string{`{"n":1}`, `{"n":2}`},
		},
		{
			name:    "a proxy before it restarts",
			answers: []answer{{200, event(1)}, {502, ""}, {503, ""}, {429, ""}, {500, ""}, {200, event(2)}, {404, ""}},
			asked:   []string{"0s", "5s 1", "10s 1", "15s 1", "20s 1", "25s 1", "30s 2"},
			heard:   []string{`{"n":1}`, `{"n":2}`},
			ended:   ErrSessionLost,
		},
		{
			name:    "it breaks, and its events have no ids",
			answers: []answer{{200, "data: {\"n\":1}\n\n"}, {502, ""}, {200, "data: {\"n\":2}\n\n"}, {405, ""}},
			asked:   []string{"0s", "5s", "10s", "15s"},
			heard: []string{
				`{"n":1}`, ErrGap.Error(), `{"n":2}`,
			},
		},
		{
			name:    "it says when",
			answers: []answer{{200, "retry: 700\n" + event(1)}, {200, "retry: 0\n" + event(2)}, {200, "retry: 999999999\n" + event(3)}, {405, ""}, {405, ""}},
			asked:   []string{"0s", "700ms 1", "800ms 2", "1m0.8s 3", "2m0.8s"},
			heard:   []string{`{"n":1}`, `{"n":2}`, `{"n":3}`},
		},
		{
			name:    "a failure is not asked for faster than usual",
			answers: []answer{{200, "retry: 1\n" + event(1)}, {503, ""}, {200, ""}, {405, ""}, {405, ""}},
			asked:   []string{"0s", "100ms 1", "5.1s 1", "5.2s 1", "5.3s"},
			heard:   []string{`{"n":1}`},
		},
		{
			name:    "an event breaks off",
			answers: []answer{{200, event(1) + "id: 2\ndata: {\"n\":"}, {200, event(2)}, {405, ""}, {405, ""}},
			asked:   []string{"0s", "5s 1", "10s 2", "15s"},
			heard:   []string{`{"n":1}`, `{"n":2}`},
		},
		{
			name:    "it has forgotten the event",
			answers: []answer{{200, event(1)}, {400, "unknown event"}, {200, event(7)}, {400, "unknown event"}, {400, ""}},
			asked:   []string{"0s", "5s 1", "10s", "15s 7", "20s"},
			heard:   []string{`{"n":1}`, `{"n":7}`},
		},
		{
			name:    "an event is too long",
			answers: []answer{{200, event(1) + "id: 2\ndata: " + strings.Repeat("x", 2000) + "\n\n"}, {405, ""}},
			asked:   []string{"0s", "5s"},
			heard:   []string{`{"n":1}`},
		},
		{
			name:    "an id that no header can say",
			answers: []answer{{200, event(1) + "id: \x01\ndata: {}\n\n"}, {405, ""}, {405, ""}},
			asked:   []string{"0s", "5s 1", "10s"},
			heard:   []string{`{"n":1}`, `{}`},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, left := time.Now(), row.answers
				var asked []string
				l := dialFake(t, func(r *http.Request, _ string) *http.Response {
					if r.Method == http.MethodGet {
						asked = append(asked, strings.TrimSpace(fmt.Sprint(time.Since(start), " ", r.Header.Get("Last-Event-ID"))))
					}
					if len(left) == 0 {
						return response(http.StatusMethodNotAllowed, "") // once too often
					}
					a := left[0]
					left = left[1:]
					return response(a.status, a.body)
				})
				l.session = "s"
				l.readStream()
				if !slices.Equal(asked, row.asked) {
					t.Errorf("asked for it\n at %q\nwant %q", asked, row.asked)
				}
				if got := context.Cause(l.ctx); !errors.Is(got, row.ended) {
					t.Errorf("the link has ended for %v, want %v", got, row.ended)
				}
				var heard []string
				for range len(l.incoming) {
					d := <-l.incoming
					if d.Err != nil {
						d.Text = []byte(d.Err.Error())
					}
					heard = append(heard, string(d.Text))
				}
				if !slices.Equal(heard, row.heard) {
					t.Errorf("heard %q, want %q", heard, row.heard)
				}
			})
		})
	}
}

func TestReadEvents(t *testing.T) {
	limits := eventLimits{1000, NewIntake(1000).reserve(t.Context())}
	var got []string
	collect := func(name string, data rpc.Line) { got = append(got, name+"="+string(data.Text)) }
	input := ": comment\n\nevent: endpoint\r\ndata: /x\r\n\r\ndata: a\ndata: b\nid: 5\n\nevent: empty\n\ndata:tight\n\ndata: unfinished"
	if err := readEvents(strings.NewReader(input), limits, &position{}, collect); err != nil {
		t.Fatal(err)
	}
	if want := "endpoint=/x|=a\nb|=tight"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, endless := range []string{"data: " + strings.Repeat("x", 5000), strings.Repeat("data: "+strings.Repeat("x", 600)+"\n", 5)} {
		if err := readEvents(strings.NewReader(endless), limits, &position{}, collect); err == nil {
			t.Error("an endless event is read")
		}
	}
}

// TestMessagesBeforeTheEndAreReceived: the end of a link never overtakes an answer.
func TestMessagesBeforeTheEndAreReceived(t *testing.T) {
	for i := range 100_000 {
		l := &httpLink{begun: make(chan struct{})}
		l.ctx, l.cancel = context.WithCancelCause(context.Background())
		go func() {
			l.deliver(Delivery{Line: rpc.Line{Text: []byte("answer")}})
			l.cancel(ErrSessionLost)
		}()
		var got []byte
		if err := l.Run(func(d Delivery) { got = d.Text }); string(got) != "answer" || !errors.Is(err, ErrSessionLost) {
			t.Fatalf("link %d received %q and ended with %v", i, got, err)
		}
	}
}

func TestReceivedMessagesAreNotCopied(t *testing.T) {
	l := run(newHTTPLink(Options{Upstream: &config.Upstream{}}))
	defer l.Close()
	message := []byte(`{"jsonrpc":"2.0","method":"notifications/x"}`)
	l.received(rpc.Line{Text: message}, nil)
	if d := <-l.incoming; &d.Text[0] != &message[0] {
		t.Errorf("received %q, %v", d.Text, d.Err)
	}
}

// runningLink is a link whose Run is called. Its deliveries wait in a channel.
type runningLink struct {
	*httpLink
	incoming chan Delivery
	ending   chan error
}

func run(l *httpLink) *runningLink {
	r := &runningLink{l, make(chan Delivery, 100), make(chan error, 1)}
	go func() { r.ending <- l.Run(func(d Delivery) { r.incoming <- d }) }()
	<-l.begun
	return r
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestCloseKeepsTheFailure: a link that is closed because nothing listens ends with
// that failure.
func TestCloseKeepsTheFailure(t *testing.T) {
	for range 2000 {
		l := run(newHTTPLink(Options{Upstream: &config.Upstream{URL: "http://127.0.0.1/"}}))
		l.client.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		})
		if err := l.Send([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)); err != nil {
			t.Fatal(err)
		}
		var call *CallEnd
		if d := <-l.incoming; !errors.As(d.Err, &call) || call.Outcome != NotSent {
			t.Fatalf("the call ends with %v", d.Err)
		}
		l.Close()
		var end *Failure
		if err := <-l.ending; !errors.As(err, &end) || end.Cause != CauseUnreachable || !strings.Contains(end.Reason, "connection refused") {
			t.Fatalf("the link ends with %v", err)
		}
	}
}

// TestCloseOfAForgottenSession: a link that is closed after the upstream has forgotten the session,
// while another call is pending, ends with that reason and does not delete the session.
func TestCloseOfAForgottenSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dialFake(t, func(r *http.Request, body string) *http.Response {
			switch {
			case r.Method != http.MethodPost:
				t.Errorf("it sends %s", r.Method)
			case body != aCall:
				<-r.Context().Done()
			}
			return response(http.StatusNotFound, "")
		})
		l.session = "s"
		l.sendAll(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`, aCall)
		l.Close()
		if err := <-l.ending; !errors.Is(err, ErrSessionLost) {
			t.Errorf("the link ends with %v", err)
		}
	})
}

// TestTheSessionIsDeletedOnce: even if several goroutines end a link at once, and
// before Close returns.
func TestTheSessionIsDeletedOnce(t *testing.T) {
	for range 2000 {
		var said atomic.Int32
		l := newHTTPLink(Options{Upstream: &config.Upstream{URL: "http://127.0.0.1/"}})
		l.session = "s"
		l.client.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			runtime.Gosched()
			said.Add(1)
			return nil, io.ErrUnexpectedEOF
		})
		var ready, all sync.WaitGroup
		ready.Add(4)
		for range 4 {
			all.Go(func() {
				ready.Done()
				ready.Wait()
				l.end(io.EOF)
			})
		}
		ready.Wait()
		l.Close()
		if n := said.Load(); n != 1 {
			t.Errorf("when it was closed it had been told %d times", n)
		}
		all.Wait()
		if n := said.Load(); n != 1 {
			t.Fatalf("it was told %d times", n)
		}
	}
}

// dialFake returns a link to an upstream that is a function.
func dialFake(t *testing.T, respond func(r *http.Request, body string) *http.Response) *runningLink {
	t.Helper()
	l := newHTTPLink(Options{Upstream: &config.Upstream{URL: "http://127.0.0.1/"}, MessageBytes: 1000, Intake: NewIntake(1000)})
	l.client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		answer := respond(r, string(body))
		if answer != nil {
			answer.Request = r // as net/http does
		}
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return answer, nil
	})
	t.Cleanup(l.Close)
	return run(l)
}

// response is an HTTP response; a body that begins with { is JSON, others are events.
func response(status int, body string) *http.Response {
	h := http.Header{"Content-Type": {"text/event-stream"}}
	if strings.HasPrefix(strings.TrimPrefix(body, "\ufeff"), "{") {
		h.Set("Content-Type", "application/json")
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

const (
	aCall    = `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`
	anAnswer = `{"jsonrpc":"2.0","id":1,"result":{}}`
)

// sendAll sends messages, and after each waits until nothing more happens.
func (l *httpLink) sendAll(t *testing.T, messages ...string) {
	t.Helper()
	for _, m := range messages {
		if err := l.Send([]byte(m)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
}

// TestTheStreamOfACall: if it ends early, the rest is read with a GET and the call is
// not sent again. Its messages have the ID of the call and are UTF-8.
func TestTheStreamOfACall(t *testing.T) {
	const early = "id: 1\nretry: 1\ndata:\n\n"
	broken := "the connection broke: its stream ended before the answer came: "
	for _, row := range []struct {
		name, first string
		rest        func(last string) *http.Response
		want        []string
		resumed     int
	}{
		{"whole", "data: " + anAnswer + "\n\n", nil, []string{"1 " + anAnswer}, 0},
		{"JSON that is not UTF-8", `{"id":1,"result":"a` + "\xff" + `b"}`, nil, []string{`1 {"id":1,"result":"a` + "\ufffd" + `b"}`}, 0},
		{"events that are not UTF-8", `data: {"id":1,"result":"a` + "\xff" + `b"}` + "\n\n", nil, []string{`1 {"id":1,"result":"a` + "\ufffd" + `b"}`}, 0},
		{"JSON with a byte order mark", "\ufeff" + anAnswer, nil, []string{"1 " + anAnswer}, 0},
		{"events with a byte order mark", "\ufeffdata: " + anAnswer + "\n\n", nil, []string{"1 " + anAnswer}, 0},
		{"too long, with a byte order mark", "\ufeff" + `{"jsonrpc":"2.0","result":"` + strings.Repeat("x", 2000) + `","id":1}`, nil, []string{" its answer has more than 1000 bytes (limits.message_bytes)"}, 0},
		{"the rest at once", early, func(string) *http.Response { return response(200, "id: 2\ndata: "+anAnswer+"\n\n") }, []string{"1 " + anAnswer}, 1},
		{"the rest in pieces", early, func(last string) *http.Response {
			if len(last) < 5 { // more pieces than there are tries
				return response(200, "id: "+last+"1\ndata: {}\n\n")
			}
			return response(200, "data: "+anAnswer+"\n\n")
		}, []string{"1 {}", "1 {}", "1 {}", "1 {}", "1 " + anAnswer}, 5},
		{"no rest", early, func(string) *http.Response { return response(200, ": nothing\n\n") }, []string{" " + broken + "unexpected EOF"}, 3},
		{"the rest is refused", early, func(string) *http.Response { return response(400, "") }, []string{" " + broken + "the rest of it: HTTP status 400"}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			posts, resumed := 0, 0
			l := dialFake(t, func(r *http.Request, _ string) *http.Response {
				if r.Method == http.MethodPost {
					posts++
					return response(200, row.first)
				}
				resumed++
				return row.rest(r.Header.Get("Last-Event-ID"))
			})
			l.sendAll(t, aCall)
			var got []string
			for range row.want {
				d := <-l.incoming
				if d.Err != nil {
					d.Text = []byte(d.Err.Error())
				}
				got = append(got, fmt.Sprintf("%s %s", d.CallID, d.Text))
			}
			if !slices.Equal(got, row.want) || posts != 1 || resumed != row.resumed {
				t.Errorf("%s: got %q after %d calls and %d GETs\nwant %q and %d GETs", row.name, got, posts, resumed, row.want, row.resumed)
			}
		})
	}
}

// TestNothingIsPostedInAForgottenSession: a call that waits for the end of the handshake is not
// posted if the upstream has forgotten the session by then.
func TestNothingIsPostedInAForgottenSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var posted []string
		l := dialFake(t, func(_ *http.Request, body string) *http.Response {
			posted = append(posted, body)
			<-time.After(time.Second)
			return response(http.StatusNotFound, "")
		})
		l.session = "s"
		const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		l.sendAll(t, initialized, aCall)
		<-time.After(5 * time.Second)
		var ended []Outcome
		for range len(l.incoming) {
			if end := (*CallEnd)(nil); errors.As((<-l.incoming).Err, &end) && end.ID != nil {
				ended = append(ended, end.Outcome)
			}
		}
		if !slices.Equal(ended, []Outcome{NotSent}) || !slices.Equal(posted, []string{initialized}) {
			t.Errorf("posted %q, and the call ended with %v", posted, ended)
		}
		if got := context.Cause(l.ctx); !errors.Is(got, ErrSessionLost) {
			t.Errorf("the link has ended for %v", got)
		}
	})
}

// TestAStreamThatDoesNotEndIsEnded: a stream that stays open after the answer is
// closed.
func TestAStreamThatDoesNotEndIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, upstream := io.Pipe()
		l := dialFake(t, func(*http.Request, string) *http.Response {
			r := response(200, "")
			r.Body = body
			return r
		})
		l.sendAll(t, aCall)
		_, _ = io.WriteString(upstream, "data: "+anAnswer+"\n\n")
		<-time.After(2 * afterResponse)
		if _, err := io.WriteString(upstream, "data: more"); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the stream is still open: %v", err)
		}
	})
}

// TestResponsesToRepliesAreIgnored: both sides count their requests. What comes back
// for a response of mcpx is not the answer to its own request with the same ID.
func TestResponsesToRepliesAreIgnored(t *testing.T) {
	for name, back := range map[string]string{
		"a message":                       anAnswer,
		"nothing":                         "",
		"a stream that goes on elsewhere": "id: 7\nretry: 1\ndata:\n\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			gets := 0
			l := dialFake(t, func(r *http.Request, body string) *http.Response {
				if r.Method == http.MethodGet {
					gets++
				}
				if body == aCall {
					<-r.Context().Done()
				}
				return response(200, back)
			})
			l.sendAll(t, aCall, anAnswer)
			<-time.After(time.Minute)
			if len(l.incoming) > 0 || gets > 0 {
				t.Errorf("%s: %d messages were received, %d GETs sent", name, len(l.incoming), gets)
			}
		})
	}
}

// TestANotificationThatHangs: it delays nothing else, and the call that it cancels
// ends a little later even if the upstream never responds.
func TestANotificationThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := dialFake(t, func(r *http.Request, body string) *http.Response {
			if !strings.Contains(body, `"id":2`) {
				<-r.Context().Done()
			}
			return response(200, `{"jsonrpc":"2.0","id":2,"result":{}}`)
		})
		l.sendAll(t, aCall, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if d := <-l.incoming; d.Err != nil || !strings.Contains(string(d.Text), `"id":2`) {
			t.Errorf("received %s, %v", d.Text, d.Err)
		}
		begin := time.Now()
		var end *CallEnd
		if d := <-l.incoming; !errors.As(d.Err, &end) || string(end.ID) != "1" || time.Since(begin) != httpCanceled {
			t.Errorf("after %s: %v", time.Since(begin), d.Err)
		}
	})
}

// TestInitializedArrivesFirst: no message is posted before notifications/initialized has
// arrived, also if several wait for it.
func TestInitializedArrivesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		arrived := make(chan struct{})
		var mu sync.Mutex
		var got []string
		l := dialFake(t, func(_ *http.Request, body string) *http.Response {
			mu.Lock()
			got = append(got, body)
			mu.Unlock()
			if body == initialized {
				<-arrived
			}
			return response(http.StatusAccepted, "")
		})
		l.sendAll(t, initialized, aCall)
		for range 2 * httpNotifications {
			l.sendAll(t, `{"jsonrpc":"2.0","method":"notifications/x"}`)
		}
		mu.Lock()
		if len(got) != 1 || got[0] != initialized {
			t.Errorf("before it arrived, %q was posted", got)
		}
		mu.Unlock()
		close(arrived)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if want := 2 + 2*httpNotifications; len(got) < want || !slices.Contains(got, aCall) {
			t.Errorf("after it arrived, %d messages were posted, want %d", len(got), want)
		}
	})
}

// TestNotificationsAreBounded: an upstream that does not respond to notifications gets a
// few at a time, and not too many wait. Requests do not wait for them.
func TestNotificationsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var posted atomic.Int32
		l := dialFake(t, func(r *http.Request, body string) *http.Response {
			if body == aCall {
				return response(200, anAnswer)
			}
			posted.Add(1)
			<-r.Context().Done()
			return nil
		})
		notification := []byte(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		for i := range httpQueue {
			if err := l.Send(notification); err != nil {
				t.Fatalf("notification %d: %v", i, err)
			}
		}
		var full *Failure
		if err := l.Send(notification); !errors.As(err, &full) {
			t.Errorf("one more: %v", err)
		}
		l.sendAll(t, aCall)
		if n := posted.Load(); n != httpNotifications || len(l.incoming) != 1 {
			t.Errorf("%d notifications are being posted, %d messages received", n, len(l.incoming))
		}
	})
}

// TestPostingGoroutinesEnd: after many requests at once, few goroutines wait for the next.
func TestPostingGoroutinesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l := dialFake(t, func(*http.Request, string) *http.Response {
			<-release
			return response(200, anAnswer)
		})
		l.sendAll(t, slices.Repeat([]string{aCall}, 50)...)
		close(release)
		synctest.Wait()
		if len(l.incoming) != 50 || len(l.idle) != httpIdle {
			t.Errorf("%d responses, %d goroutines wait, want %d", len(l.incoming), len(l.idle), httpIdle)
		}
		l.sendAll(t, aCall)
		if len(l.incoming) != 51 || len(l.idle) != httpIdle {
			t.Errorf("after one more: %d responses, %d goroutines wait", len(l.incoming), len(l.idle))
		}
	})
}

// TestRequestsNameTheirSession: after the handshake each request has the session and
// the revision that the upstream chose.
func TestRequestsNameTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		l := dialFake(t, func(r *http.Request, _ string) *http.Response {
			got = append(got, r.Method+" "+r.Header.Get("Mcp-Session-Id")+" "+r.Header.Get("Mcp-Protocol-Version"))
			answer := response(200, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}`)
			answer.Header.Set("Mcp-Session-Id", "s")
			return answer
		})
		l.sendAll(t, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, aCall)
		l.Close()
		if want := []string{"POST  ", "POST s 2025-06-18", "DELETE s 2025-06-18"}; !slices.Equal(got, want) {
			t.Errorf("requests %q, want %q", got, want)
		}
	})
}

// TestRefusalsOfAnotherSession: a message that was sent before the upstream opened its session
// may be refused later, because it named no session. The new session stays open.
func TestRefusalsOfAnotherSession(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusBadRequest} {
		synctest.Test(t, func(t *testing.T) {
			opened := make(chan struct{})
			l := dialFake(t, func(_ *http.Request, body string) *http.Response {
				if !strings.Contains(body, "initialize") {
					<-opened
					return response(status, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Invalid or missing session ID"}}`)
				}
				answer := response(200, `{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18"}}`)
				answer.Header.Set("Mcp-Session-Id", "s")
				return answer
			})
			l.sendAll(t, `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":2,"method":"initialize"}`)
			close(opened)
			synctest.Wait()
			if err := l.ctx.Err(); err != nil {
				t.Errorf("%d: the link has ended: %v", status, context.Cause(l.ctx))
			}
			if len(l.incoming) != 2 {
				t.Errorf("%d: %d requests have ended, want 2", status, len(l.incoming))
			}
		})
	}
}

// TestFallbackBesideANotification: a link falls back to legacy SSE while another message
// is refused.
func TestFallbackBesideANotification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var posted atomic.Bool
		var refused sync.WaitGroup
		refused.Add(2)
		l := dialFake(t, func(r *http.Request, body string) *http.Response {
			switch {
			case r.Method == http.MethodGet:
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(io.MultiReader(strings.NewReader("event: endpoint\ndata: /post\n\n"), untilDone{r.Context()}))}
			case r.URL.Path == "/post" && strings.Contains(body, "initialize"):
				posted.Store(true)
			case r.URL.Path != "/post":
				refused.Done()
				refused.Wait() // so that the link handles both at the same time
				return response(http.StatusMethodNotAllowed, "")
			}
			return response(http.StatusAccepted, "")
		})
		l.fallback = true
		if err := l.Send([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)); err != nil {
			t.Fatal(err)
		}
		l.sendAll(t, `{"jsonrpc":"2.0","id":2,"method":"initialize"}`)
		if !posted.Load() {
			t.Error("initialize was not posted to the address of legacy SSE")
		}
	})
}

// untilDone is a stream without data that ends with ctx.
type untilDone struct{ ctx context.Context }

func (u untilDone) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, u.ctx.Err()
}
