package server

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// TestCancellation: a canceled call is not answered, the upstream is notified, and
// the call counts as canceled.
func TestCancellation(t *testing.T) {
	b := start(t, newUpstream(t, "a"))
	b.ask(t, request("tools/call", `{"name":"inspect","arguments":{"server_name":"a"}}`))
	for _, id := range []string{`7`, `"7"`, `"a b"`} {
		answered := make(chan string, 1)
		go func() {
			answered <- b.ask(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"a","tool_name":"sleep","arguments":{"ms":60000}}}}`)
		}()
		for b.inFlight() == 0 {
			<-time.After(time.Millisecond)
		}
		b.ask(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"other"}}`)
		b.ask(t, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		b.ask(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`,"reason":"enough"}}`)
		select {
		case got := <-answered:
			if got != "" {
				t.Errorf("%s was answered: %s", id, got)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s was not canceled", id)
		}
		if n := b.inFlight(); n != 0 {
			t.Errorf("%d calls are in flight after the end", n)
		}
	}
	if got := b.outcomes(); !maps.Equal(got, map[string]int{"cancelled": 3}) {
		t.Errorf("outcomes %v, want 3 canceled", got)
	}
}

// inFlight returns the number of requests that the client can cancel.
func (b *bench) inFlight() int {
	return b.client.Conn.Incoming()
}

func TestUpstreamsAskTheClient(t *testing.T) {
	b := start(t, newUpstream(t, "one"))
	c := b.connect(t, "2025-06-18", `{"sampling":{},"roots":{},"elicitation":{}}`)
	answers := make(chan string, 1)
	go func() {
		answers <- c.ask(t, request("tools/call", exec("ask", `{"method":"sampling/createMessage","params":{"temperature":0}}`)))
	}()
	if got, want := c.next(t, "sampling"), `{"jsonrpc":"2.0","id":"mcpx-1","method":"sampling/createMessage","params":{"temperature":0}}`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if got := c.ask(t, `{"jsonrpc":"2.0","id":"mcpx-1","result":{"role":"assistant","n":9007199254740993}}`); got != "" {
		t.Errorf("an answer was answered with %s", got)
	}
	if got := <-answers; !strings.Contains(got, `{\"role\":\"assistant\",\"n\":9007199254740993}`) {
		t.Errorf("got %s", got)
	}
	c.ask(t, `{"jsonrpc":"2.0","id":"mcpx-1","result":{}}`) // late: nobody waits any more

	// What the client cannot do is answered for it.
	got := c.ask(t, request("tools/call", exec("ask", `{"method":"elicitation/create","params":{"mode":"url"}}`)))
	if want := `the client connected to mcpx has no \\\"elicitation.url\\\" capability`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	plain := b.connect(t, "2025-06-18", `{}`)
	got = plain.ask(t, request("tools/call", exec("ask", `{"method":"roots/list"}`)))
	if want := `roots/list: the client connected to mcpx has no \\\"roots\\\" capability`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	plain.want(t, "roots/list", "", `{"roots":[]}`)
}

func TestRoots(t *testing.T) {
	b := start(t, newUpstream(t, "one"))
	c := b.connect(t, "2025-06-18", `{"roots":{"listChanged":true}}`)
	answers := make(chan string, 1)
	go func() { answers <- c.ask(t, request("roots/list", "")) }()
	c.next(t, `"roots/list"`)
	c.ask(t, `{"jsonrpc":"2.0","id":"mcpx-1","error":{"code":-32000,"message":"not now","data":1}}`)
	if got, want := <-answers, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"not now","data":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.ask(t, request("tools/call", exec("pid", "{}"))) // the upstream is there
	c.ask(t, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	if got := c.ask(t, request("tools/call", exec("heard", `{"method":"notifications/roots/list_changed"}`))); !strings.Contains(got, `"text":"1"`) {
		t.Errorf("the upstream heard %s", got)
	}
}

// TestReasonsOfCancellations: the cause of a canceled request has the client's own reason, if it
// gives one.
func TestReasonsOfCancellations(t *testing.T) {
	for reason, want := range map[string]string{
		"":                         "canceled by the client",
		"too slow":                 "too slow",
		strings.Repeat("x", 5000):  strings.Repeat("x", reasonBytes-len("…")) + "…",
		strings.Repeat("ü", 10000): strings.Repeat("ü", (reasonBytes-len("…"))/2) + "…",
	} {
		err := new(conversation).Canceled(reason)
		if err.Error() != want {
			t.Errorf("%.20q: the cause is %.20q of %d bytes, want %.20q of %d", reason, err, len(err.Error()), want, len(want))
		}
		if !errors.Is(err, ErrCanceled) {
			t.Errorf("%.20q: the cause is not ErrCanceled", reason)
		}
	}
}

func TestACanceledCallCancelsItsRequests(t *testing.T) {
	c := start(t, newUpstream(t, "one")).connect(t, "2025-06-18", `{"roots":{}}`)
	done := c.begin(t, request("tools/call", exec("ask", `{"method":"roots/list"}`)))
	c.next(t, `"roots/list"`)
	c.ask(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if got := <-done; got != nil {
		t.Errorf("a canceled call was answered with %s", got)
	}
	if got, want := c.next(t, "cancelled"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mcpx-1","reason":"canceled by the client"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestProgressAndLogMessages(t *testing.T) {
	c := start(t, newUpstream(t, "one", "-full")).connect(t, "2025-06-18", `{}`)
	c.ask(t, request("tools/call", exec("progress", `{"steps":2}`)))
	for i := range 2 {
		want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":%d,"total":2}}`, i+1)
		if got := c.next(t, "progress"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	c.want(t, "logging/setLevel", `{"level":"warn"}`, `{"_meta":{"success":true,"level":"warn","message":"Log level set to warn"}}`)
	c.ask(t, request("tools/call", exec("say", `{"method":"notifications/message","params":[{"level":"info","data":1},{"level":"warning","data":2},{"level":"alert","logger":"db","data":3}]}`)))
	for _, want := range []string{`{"level":"warning","data":2,"logger":"one"}`, `{"level":"alert","logger":"one/db","data":3}`} {
		if got := c.next(t, "notifications/message"); got != `{"jsonrpc":"2.0","method":"notifications/message","params":`+want+`}` {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
