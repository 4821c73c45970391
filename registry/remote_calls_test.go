package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/link"
	"mcpx/internal/rawjson"
)

// odd is a remote server whose calls answer as the test wants.
type odd struct {
	call func(w http.ResponseWriter, r *http.Request, id, name string)
	note func(method string) // takes what has no answer; may be nil
}

func (o *odd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	method, _ := rawjson.String(rawjson.Get(body, "method"))
	id := string(rawjson.Get(body, "id"))
	results := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]}`,
	}
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case results[method] != "":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, results[method])
	case method == "tools/call":
		name, _ := rawjson.String(rawjson.Get(rawjson.Get(body, "params"), "name"))
		o.call(w, r, id, name)
	default:
		if o.note != nil {
			o.note(method)
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

func runOdd(t *testing.T, o *odd) *Registry {
	t.Helper()
	remote := httptest.NewServer(o)
	t.Cleanup(remote.Close)
	r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "http"}})
	return r
}

// TestErrorsOfARemoteUpstream: what the upstream says of a failure is kept, in
// whatever way it says it, and at once.
func TestErrorsOfARemoteUpstream(t *testing.T) {
	const own = `"error":{"code":-32029,"message":"slow down","data":{"x":1}}`
	for name, tt := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, id, _ string)
		want   string
	}{
		"an answer to nobody": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,`+own+`}`)
		}, `-32029 slow down {"x":1}`},
		"an HTTP status": {func(w http.ResponseWriter, _ *http.Request, id, _ string) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,`+own+`}`)
		}, `-32029 slow down {"x":1}`},
		"an HTTP status alone": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.WriteHeader(http.StatusTooManyRequests)
		}, `the call to server "a" failed: HTTP status 429 Too Many Requests`},
		"a server that is busy": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}, `the call to server "a" failed: HTTP status 503 Service Unavailable; whether the call took effect is unknown, and mcpx does not repeat it`},
		"a page": {func(w http.ResponseWriter, _ *http.Request, _, _ string) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		}, `the call to server "a" failed: it answered with text/html, which is not a message; is this the url of an MCP server?`},
		"a redirect": {func(w http.ResponseWriter, r *http.Request, _, _ string) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, `the call to server "a" failed: it redirects POST to /elsewhere as GET; configure that url directly`},
	} {
		t.Run(name, func(t *testing.T) {
			r := runOdd(t, &odd{call: tt.answer})
			_, err := callTool(t.Context(), r, "a", "a", "{}")
			got := fmt.Sprint(err)
			var own *jsonrpc.Error
			if errors.As(err, &own) {
				got = fmt.Sprintf("%d %s %s", own.Code, own.Message, own.Data)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestANotificationThatHangs: it holds up nothing else.
func TestANotificationThatHangs(t *testing.T) {
	hung, goOn := make(chan struct{}), make(chan struct{})
	o := &odd{note: func(method string) {
		if method == "notifications/cancelled" {
			close(hung)
			<-goOn
		}
	}}
	called := make(chan struct{}, 1)
	o.call = func(w http.ResponseWriter, r *http.Request, id, name string) {
		if name == "a" {
			called <- struct{}{}
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"fine"}]}}`)
	}
	r := runOdd(t, o)
	defer close(goOn)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = callTool(ctx, r, "a", "a", "{}")
	}()
	<-called
	cancel()
	<-hung
	if got := mustCall(t, r, "a", "b", "{}"); got != "fine" {
		t.Errorf("got %q", got)
	}
	<-ended
}

// TestWhatComesOnTheStreamOfACallIsOfIt: however many clients have calls in flight.
func TestWhatComesOnTheStreamOfACallIsOfIt(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	r := runOdd(t, &odd{call: func(w http.ResponseWriter, _ *http.Request, id, name string) {
		both.Done()
		both.Wait() // until both are in flight
		events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":%q}}\n\n", name)+
			fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":\"of %s\",\"method\":\"roots/list\",\"params\":{}}\n\n", name))
		events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":%q}]}}\n\n", id, name))
	}})
	clients := map[string]*recorder{"a": newRecorder("client of a"), "b": newRecorder("client of b")}
	var calls sync.WaitGroup
	for name, c := range clients {
		r.Attach(c)
		calls.Go(func() {
			if got, err := callAs(t, r, c, name, "{}"); err != nil || got != name {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		})
	}
	calls.Wait()
	for name, c := range clients {
		c.wait(t, `notifications/message {"level":"info","data":"`+name+`","logger":"a"}`, "roots/list {}")
		if got := c.heard("notifications/message"); len(got) != 1 {
			t.Errorf("the client of %s heard %q", name, got)
		}
	}
}

// TestACallIsNeverReplayed: net/http sends a POST again over a new connection if it
// has a header that says it is idempotent. A call must not be.
func TestACallIsNeverReplayed(t *testing.T) {
	for _, header := range []string{"Idempotency-Key", "X-Idempotency-Key", "x-idempotency-key"} {
		t.Run(header, func(t *testing.T) {
			var calls atomic.Int32
			server := httptest.NewServer(&odd{call: func(w http.ResponseWriter, r *http.Request, id, _ string) {
				if r.Header.Get(header) != "abc" {
					t.Errorf("the header is %q", r.Header.Get(header))
				}
				if calls.Add(1)%2 == 1 { // a good answer leaves a connection for the next call
					jsonAnswer(w, []byte(id), textResult("well"))
					return
				}
				panic(http.ErrAbortHandler) // closes the connection
			}})
			t.Cleanup(server.Close)
			r, _ := run(t, map[string]any{"a": map[string]any{"url": server.URL, "type": "http", "headers": map[string]string{header: "abc"}}})
			for range 4 {
				_, _ = callTool(t.Context(), r, "a", "a", "{}")
			}
			if got := calls.Load(); got != 4 {
				t.Errorf("4 calls reached the server %d times", got)
			}
		})
	}
}

// TestPlainReasons: why a server cannot be reached is said without the words of Go.
func TestPlainReasons(t *testing.T) {
	denied := func(challenge string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = stdlog.New(io.Discard, "", 0) // it complains of who does not trust it
	secure.StartTLS()
	t.Cleanup(secure.Close)
	const challenge = `Bearer resource_metadata="https://example.com/.well-known/oauth-protected-resource"`
	r, _ := run(t, map[string]any{
		"nobody": map[string]any{"url": "http://127.0.0.1:1/mcp"},
		"host":   map[string]any{"url": "http://nowhere.invalid/mcp"},
		"secure": map[string]any{"url": secure.URL},
		"oauth":  map[string]any{"url": denied(challenge)},
		"sse":    map[string]any{"url": denied(challenge), "type": "sse"},
		"key":    map[string]any{"url": denied(challenge), "headers": map[string]string{"Authorization": "Bearer old"}},
		"basic":  map[string]any{"url": denied("Basic")},
	})
	for server, want := range map[string]struct {
		reason string
		cause  link.Cause
	}{
		"nobody": {"nothing listens on 127.0.0.1:1 (connection refused)", link.CauseUnreachable},
		"host":   {"host nowhere.invalid was not found", link.CauseUnreachable},
		"secure": {"its certificate is not trusted: ", ""},
		"oauth":  {"needs sign-in (OAuth), which mcpx cannot do yet", link.CauseSignIn},
		"sse":    {"needs sign-in (OAuth), which mcpx cannot do yet", link.CauseSignIn},
		"key":    {"authentication failed: HTTP status 401 Unauthorized; check its headers", link.CauseAuth},
		"basic":  {"authentication failed: HTTP status 401 Unauthorized; check its headers", link.CauseAuth},
	} {
		if u := r.Settled(t.Context(), server); !strings.HasPrefix(u.Reason, want.reason) || u.Cause != want.cause {
			t.Errorf("%s: %q (%s), want %q (%s)", server, u.Reason, u.Cause, want.reason, want.cause)
		}
	}
}
