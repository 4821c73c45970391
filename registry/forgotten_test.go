package registry

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/link"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// forgetful is a remote upstream with sessions that it can forget.
type forgetful struct {
	url string

	mu       sync.Mutex
	sessions int             // number of opened sessions
	known    map[string]bool // sessions that are not forgotten
	got      map[string]int  // calls, by their text
	ran      map[string]int  // calls that were run
	refuses  bool            // answers every call with 404
	isGone   bool            // answers everything with 404
	forgets  int             // forgets the next sessions right after initialize
	body     string          // of a 404
	tools    string          // the list; "": the default

	together *sync.WaitGroup // calls are answered when all have come; may be nil
	began    chan struct{}   // gets an element for a call of "b", which never ends
}

func newForgetful(t *testing.T) *forgetful {
	t.Helper()
	f := &forgetful{known: map[string]bool{}, got: map[string]int{}, ran: map[string]int{}, began: make(chan struct{}, 1), body: "no such session"}
	opened := func(w http.ResponseWriter, _ *http.Request, m rpc.Message) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sessions++
		id := fmt.Sprint("s", f.sessions)
		f.known[id] = f.forgets == 0
		f.forgets = max(f.forgets-1, 0)
		w.Header().Set("Mcp-Session-Id", id)
		jsonAnswer(w, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`)
	}
	methods := scripted{"initialize": opened, "tools/call": f.call, "tools/list": func(w http.ResponseWriter, _ *http.Request, m rpc.Message) {
		jsonAnswer(w, m.ID, `{"tools":`+cmp.Or(f.tools, `[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]`)+`}`)
	}}
	f.url = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session := r.Header.Get("Mcp-Session-Id")
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		m, _ := rpc.Parse(body)
		f.mu.Lock()
		isCall := m.Method == "tools/call"
		if isCall {
			f.got[textOf(m)]++
		}
		is404 := f.isGone || session != "" && !f.known[session] || isCall && f.refuses
		together := f.together
		f.mu.Unlock()
		if !is404 {
			methods.ServeHTTP(w, r)
			return
		}
		if isCall && together != nil {
			together.Done()
			together.Wait()
		}
		http.Error(w, f.body, http.StatusNotFound)
	}))
	return f
}

// textOf returns the argument "text" of a call.
func textOf(m rpc.Message) string {
	text, _ := rawjson.String(rawjson.Get(rawjson.Get(m.Params, "arguments"), "text"))
	return text
}

func (f *forgetful) call(w http.ResponseWriter, r *http.Request, m rpc.Message) {
	f.mu.Lock()
	f.ran[textOf(m)]++
	f.mu.Unlock()
	if name, _ := rawjson.String(rawjson.Get(m.Params, "name")); name == "b" {
		_ = http.NewResponseController(w).Flush()
		f.began <- struct{}{}
		<-r.Context().Done()
		return
	}
	jsonAnswer(w, m.ID, textResult(textOf(m)))
}

// forget forgets all sessions.
func (f *forgetful) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.known)
}

// counts returns how many sessions there were, and how often a call came and was run.
func (f *forgetful) counts(text string) (sessions, got, ran int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions, f.got[text], f.ran[text]
}

// TestForgottenSession: a call that was answered with 404, because the upstream has forgotten
// the session, is sent once more in a new session, whoever owns the session.
func TestForgottenSession(t *testing.T) {
	forgetAgain := func(f *forgetful) { f.forget(); f.forgets = 2 }
	const rpcError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`
	for name, row := range map[string]struct {
		entry  map[string]any
		body   string
		change func(f *forgetful)
		err    string // "" if the call works
		got    int    // how often it came
		opened int    // new sessions
	}{
		"shared":                           {nil, "no such session", (*forgetful).forget, "", 2, 1},
		"of a client":                      {map[string]any{"isolation": "client"}, "no such session", (*forgetful).forget, "", 2, 1},
		"of a caller":                      {map[string]any{"isolation": "user"}, "no such session", (*forgetful).forget, "", 2, 1},
		"lazy":                             {map[string]any{"start": "lazy"}, "no such session", (*forgetful).forget, "", 2, 1},
		"shared, and again":                {nil, "no such session", forgetAgain, "", 2, 3},
		"of a client, and again":           {map[string]any{"isolation": "client"}, "no such session", forgetAgain, "", 2, 3},
		"of a caller, and again":           {map[string]any{"isolation": "user"}, "no such session", forgetAgain, "", 2, 3},
		"lazy, and again":                  {map[string]any{"start": "lazy"}, "no such session", forgetAgain, "", 2, 3},
		"lazy of a client, and again":      {map[string]any{"start": "lazy", "isolation": "client"}, "no such session", forgetAgain, "", 2, 3},
		"with a JSON-RPC error":            {nil, rpcError, (*forgetful).forget, "", 2, 1},
		"with the call's own error":        {nil, strings.Replace(rpcError, "null", "3", 1), (*forgetful).forget, "", 2, 1},
		"it refuses the call":              {nil, rpcError, func(f *forgetful) { f.refuses = true }, "(HTTP status 404 Not Found: Session not found), and then the new session, too; the call was not made. Try again later", 2, 1},
		"the tool is gone":                 {nil, "no such session", func(f *forgetful) { f.forget(); f.tools = `[]` }, "does not offer this tool; the call was not made. Use inspect", 1, 1},
		"a gateway that has lost the rest": {nil, "no such server", func(f *forgetful) { f.isGone = true }, "HTTP status 404 Not Found", 1, 0},
	} {
		for _, how := range []string{"Send", "Call"} {
			t.Run(name+" "+how, func(t *testing.T) {
				f := newForgetful(t)
				entry := map[string]any{"url": f.url, "type": "http"}
				for key, value := range row.entry {
					entry[key] = value
				}
				r, _ := run(t, map[string]any{"a": entry})
				ann := recorderOf("1", "ann")
				r.Attach(ann)
				r.Settled(t.Context(), "a")
				send := func(text string) (string, error) {
					q := upstream.Request{Method: "tools/call", Params: fmt.Appendf(nil, `{"name":"a","arguments":{"text":%q}}`, text), Meta: []byte("{}"), Client: ann}
					var result []byte
					var err error
					if how == "Call" {
						result, err = r.Call(t.Context(), "a", q)
					} else {
						var sent rpc.Result
						sent, err = rpc.Wait(func(done rpc.Done) { r.Go(t.Context(), "a", q, done) })
						result = sent.Take()
					}
					return string(result), err
				}
				if _, err := send("before"); err != nil {
					t.Fatal(err)
				}
				before, _, _ := f.counts("")
				f.body = row.body
				row.change(f)
				result, err := send("during")
				if row.err == "" && (err != nil || !strings.Contains(result, "during")) || row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err) || strings.Contains(err.Error(), "unknown")) {
					t.Errorf("%s, %v, want the error %q", result, err, row.err)
				}
				sessions, got, ran := f.counts("during")
				isReplaced := f.refuses && sessions-before > row.opened // the refused session, too, in the background
				if sessions-before != row.opened && !isReplaced {
					t.Errorf("%d new sessions, want %d", sessions-before, row.opened)
				}
				if got != row.got {
					t.Errorf("the call came %d times, want %d", got, row.got)
				}
				if wantRan := row.got - 1; row.err == "" && ran != wantRan {
					t.Errorf("the call was run %d times, want %d", ran, wantRan)
				}
			})
		}
	}
}

// TestCallsOfAForgottenSession: calls that come together share one new session. A call that
// the old session had begun is not sent again.
func TestCallsOfAForgottenSession(t *testing.T) {
	const many = 20
	f := newForgetful(t)
	r, _ := run(t, map[string]any{"a": map[string]any{"url": f.url, "type": "http"}})
	if u := r.Settled(t.Context(), "a"); u.State != live.Ready {
		t.Fatalf("%s: %s", u.State, u.Reason)
	}
	hanging := make(chan error, 1)
	go func() {
		_, err := callTool(t.Context(), r, "a", "b", `{"text":"hanging"}`)
		hanging <- err
	}()
	<-f.began
	f.forget()
	f.mu.Lock()
	f.together = &sync.WaitGroup{}
	f.together.Add(many)
	f.mu.Unlock()
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			text := fmt.Sprint("call ", i)
			if got, err := callTool(t.Context(), r, "a", "a", fmt.Sprintf(`{"text":%q}`, text)); got != text || err != nil {
				t.Errorf("%s: %q, %v", text, got, err)
			}
			if _, got, ran := f.counts(text); got != 2 || ran != 1 {
				t.Errorf("%s came %d times and was run %d times", text, got, ran)
			}
		})
	}
	wg.Wait()
	var lost *upstream.Lost
	if err := <-hanging; !errors.As(err, &lost) || !strings.Contains(err.Error(), "whether the call took effect is unknown") {
		t.Errorf("the call that had begun: %v", err)
	}
	if sessions, got, _ := f.counts("hanging"); sessions != 2 || got != 1 {
		t.Errorf("%d sessions, want 2; the call that had begun came %d times", sessions, got)
	}
}

// TestNotFoundWithoutASession: a 404 to a request without a session ID is the response of the
// call, which is not sent again.
func TestNotFoundWithoutASession(t *testing.T) {
	calls := make(chan struct{}, 10)
	url := serve(t, scripted{"tools/call": func(w http.ResponseWriter, _ *http.Request, _ rpc.Message) {
		calls <- struct{}{}
		http.Error(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such tool"}}`, http.StatusNotFound)
	}})
	r, _ := run(t, map[string]any{"a": map[string]any{"url": url, "type": "http"}})
	_, err := callTool(t.Context(), r, "a", "a", "{}")
	var own *rpc.Error
	if !errors.As(err, &own) || own.Message != "no such tool" || len(calls) != 1 {
		t.Errorf("%v after %d calls", err, len(calls))
	}
}

// TestSessionsForgottenAgainAndAgain: a forgotten session does not count as a failure of the
// upstream, so mcpx opens the next one at once, each time. Both attempts of a call share its time
// limit.
func TestSessionsForgottenAgainAndAgain(t *testing.T) {
	calls, takes := 0, time.Duration(0)
	f := &fake{Pings: never, Script: func(l *fakeLink, method, id string, _ []byte) (bool, error) {
		if method != "resources/read" {
			return false, nil
		}
		if calls++; calls%2 == 0 { // the second try
			return false, nil
		}
		time.AfterFunc(takes, func() {
			l.Broken <- &link.CallEnd{ID: []byte(id), Outcome: link.Forgotten, Reason: "forgotten"}
			time.AfterFunc(time.Millisecond, func() { l.End(link.ErrSessionLost) })
		})
		return true, nil
	}}
	inTime(t, f, func(t *testing.T, r *Registry) {
		for i := range 5 {
			if _, err := r.Call(t.Context(), "a", upstream.Request{Method: "resources/read"}); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		}
		takes = 40 * time.Second
		f.Set(func(f *fake) { f.Takes = time.Minute })
		begin := time.Now()
		_, err := r.Call(t.Context(), "a", upstream.Request{Method: "resources/read", Meta: []byte("{}"), Begun: begin})
		var late *upstream.Timeout
		if !errors.As(err, &late) || late.Limit != 50*time.Second || time.Since(begin) != 50*time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	}, func(c *config.Upstream) { c.MaxTimeout = 50 * time.Second })
}

// amnesiac is a fake upstream that forgets its sessions.
type amnesiac struct {
	fake
	atReady bool               // it forgets a session when mcpx has read its lists, not before
	left    int                // how many sessions it forgets at their start
	refuses bool               // it forgets the session of the next call
	lost    map[*fakeLink]bool // the sessions that it has forgotten
}

func newAmnesiac(atReady bool) *amnesiac {
	a := &amnesiac{atReady: atReady, lost: map[*fakeLink]bool{}}
	a.Pings, a.Script = never, a.handle
	return a
}

func (a *amnesiac) handle(l *fakeLink, method, id string, _ []byte) (bool, error) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	end := func() { l.End(link.ErrSessionLost) }
	switch {
	case method == "tools/list" && a.left > 0:
		a.left--
		a.lost[l] = true
		if a.atReady {
			time.AfterFunc(time.Microsecond, end)
			return false, nil
		}
		end()
		return true, nil
	case method == "resources/read" && a.lost[l]:
		end()
		return true, rpc.ErrClosed // not sent
	case method == "resources/read" && a.refuses:
		a.refuses = false
		l.Broken <- &link.CallEnd{ID: []byte(id), Outcome: link.Forgotten, Reason: "forgotten"}
		time.AfterFunc(time.Microsecond, end)
		return true, nil
	}
	return false, nil
}

// TestSessionsForgottenAtTheStart: mcpx replaces a session that the upstream forgets at once, and
// calls wait. If the upstream forgets session after session, mcpx waits longer and longer. A call
// that succeeds starts the count again.
func TestSessionsForgottenAtTheStart(t *testing.T) {
	for name, atReady := range map[string]bool{"before it is ready": false, "when it is ready": true} {
		t.Run(name, func(t *testing.T) {
			a, read := newAmnesiac(atReady), upstream.Request{Method: "resources/read"}
			inTime(t, &a.fake, func(t *testing.T, r *Registry) {
				for round := range 3 {
					a.Set(func(*fake) { a.left, a.refuses = 2, true })
					begin := time.Now()
					if _, err := r.Call(t.Context(), "a", read); err != nil {
						t.Errorf("round %d: %v", round, err)
					}
					if took := time.Since(begin); took > time.Millisecond {
						t.Errorf("round %d: the call waited for %s", round, took)
					}
					if n, want := len(a.Times()), 1+3*(round+1); n != want {
						t.Errorf("round %d: %d sessions so far, want %d", round, n, want)
					}
				}
				before := len(a.Times())
				a.Set(func(*fake) { a.left, a.refuses = 1000, true })
				if _, err := r.Call(t.Context(), "a", read); err == nil {
					t.Error("a call succeeds without a session")
				}
				if n := len(a.Times()) - before; n != 3 {
					t.Errorf("%d sessions at once, want 3", n)
				}
				after(10 * time.Second)
				if n := len(a.Times()) - before; n != 6 { // after 1, 2 and 4 s, or a little less
					t.Errorf("%d sessions in 10 s, want 6: %.1f", n, a.Times())
				}
			})
		})
	}
}

// TestForgottenWhileTheCacheIsFilled: a lazy upstream that forgets its first sessions is listed,
// and then stopped.
func TestForgottenWhileTheCacheIsFilled(t *testing.T) {
	a := newAmnesiac(false)
	a.left = 2
	inTime(t, &a.fake, func(t *testing.T, r *Registry) {
		after(time.Millisecond)
		expect(t, r, &a.fake, live.Idle, 3)
		if r.Catalog().Upstream("a").ListedAt.IsZero() {
			t.Error("it is not listed")
		}
	}, lazy)
}
