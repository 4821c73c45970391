package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/rawjson"
)

// peer is the other end of a Conn: it keeps every message that the Conn sends.
type peer struct {
	*Conn
	mu   sync.Mutex
	sent []string
	log  strings.Builder
}

func newPeer(prefix string) *peer {
	p := &peer{}
	p.Conn = NewConn(ConnOptions{Handler: p, Send: p.take, Prefix: prefix, Log: zerolog.New(&p.log)})
	return p
}

func (p *peer) take(message []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, string(message))
	return nil
}

func (p *peer) Result(_ *Call, m Message) ([]byte, error) {
	if m.Error != nil {
		return nil, ParseError(m.Error)
	}
	return m.Result, nil
}

func (p *peer) TimedOut(_ *Call, l Limit) error {
	return fmt.Errorf("timed out, total %t", l == TotalLimit)
}

func (p *peer) Lost(reason error) error { return fmt.Errorf("lost: %w", reason) }

func (p *peer) Canceled(reason string) error { return errors.New("canceled: " + reason) }

// say hands a message of the peer to the Conn.
func (p *peer) say(line string) {
	m, _ := Parse([]byte(line))
	p.Receive(m, Line{Text: []byte(line)})
}

// progress hands progress of the first call to the Conn.
func (p *peer) progress(n int) {
	p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":%d}}`, n))
}

// start sends a request and returns the ends that are reported for it.
func (p *peer) start(ctx context.Context, t *testing.T, r Request) *[]string {
	t.Helper()
	ends := &[]string{}
	if err := p.Go(ctx, r, func(r Result, err error) { *ends = append(*ends, fmt.Sprintf("%s %v", r.JSON, err)) }); err != nil {
		t.Fatal(err)
	}
	return ends
}

// check compares lines.
func check(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestConnAnswers: an answer ends the call with its ID, however the peer writes that
// ID. Other answers end nothing.
func TestConnAnswers(t *testing.T) {
	for _, row := range []struct{ name, prefix, line, want string }{
		{"number", "", `{"jsonrpc":"2.0","id":2,"result":{}}`, "{} <nil>"},
		{"string", "", `{"jsonrpc":"2.0","id":"2","result":{}}`, "{} <nil>"},
		{"float", "", `{"jsonrpc":"2.0","id":2.0,"result":{}}`, "{} <nil>"},
		{"error", "", `{"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no"}}`, " no (-5)"},
		{"fraction", "", `{"jsonrpc":"2.0","id":2.5,"result":{}}`, ""},
		{"unknown", "", `{"jsonrpc":"2.0","id":9,"result":{}}`, ""},
		{"text", "", `{"jsonrpc":"2.0","id":"x","result":{}}`, ""},
		{"prefix", "us-", `{"jsonrpc":"2.0","id":"us-2","result":{}}`, "{} <nil>"},
		{"without the prefix", "us-", `{"jsonrpc":"2.0","id":2,"result":{}}`, ""},
	} {
		p := newPeer(row.prefix)
		p.start(t.Context(), t, Request{Method: "a"})
		second := p.start(t.Context(), t, Request{Method: "b"})
		p.say(row.line)
		p.say(row.line) // which is late
		if got := strings.Join(*second, "|"); got != row.want || (p.Len() == 1) != (row.want != "") {
			t.Errorf("%s: the call ends with %q, want %q; %d calls are pending", row.name, got, row.want, p.Len())
		}
	}
}

// TestConnRequests: params and _meta are sent as they are, with a progress token of
// the Conn itself.
func TestConnRequests(t *testing.T) {
	for want, r := range map[string]Request{
		`{"jsonrpc":"2.0","id":1,"method":"m"}`:                                                                {Method: "m"},
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a": 1}}`:                                              {Method: "m", Params: []byte(`{"a": 1}`)},
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1}}}`:                         {Method: "m", Meta: []byte(`{}`), Params: []byte(`{}`)},
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1,"trace":{"id":1}},"a": 1}}`: {Method: "m", Meta: []byte(`{"progressToken":"mine","trace":{"id":1}}`), Params: []byte(`{"a": 1}`)},
	} {
		p := newPeer("")
		p.start(t.Context(), t, r)
		check(t, "request", p.sent, want)
	}
	p, broken := newPeer(""), errors.New("broken pipe")
	_, err := p.Call(t.Context(), Request{Method: "m", Send: func([]byte) error { return broken }})
	if !errors.Is(err, broken) || p.Len() != 0 {
		t.Errorf("a request that cannot be sent: %v, %d calls are pending", err, p.Len())
	}
}

// TestConnCancels: when its context ends, a call ends with the cause, and the peer
// gets one notification after the request. MCP forbids to cancel initialize.
func TestConnCancels(t *testing.T) {
	const note = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"us-1","reason":"enough"}}`
	for method, want := range map[string][]string{
		"m":          {`{"jsonrpc":"2.0","id":"us-1","method":"m"}`, note},
		"initialize": {`{"jsonrpc":"2.0","id":"us-1","method":"initialize"}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer("us-")
			ctx, cancel := context.WithCancelCause(t.Context())
			ends := p.start(ctx, t, Request{Method: method, Send: func(message []byte) error {
				cancel(errors.New("enough")) // while the request is sent
				<-time.After(time.Second)
				return p.take(message)
			}})
			<-time.After(time.Minute)
			synctest.Wait()
			p.say(`{"jsonrpc":"2.0","id":"us-1","result":{}}`)
			check(t, method, *ends, " enough")
			check(t, method, p.sent, want...)
		})
	}
}

// TestConnLimits: a call ends after its idle limit without progress, and after its
// total limit in any case. While the peer waits for our user the idle limit rests.
func TestConnLimits(t *testing.T) {
	const idle, total = time.Minute, 15 * time.Minute
	for _, row := range []struct {
		name            string
		progress, holds time.Duration // between notifications; how long the user thinks
		want            time.Duration
		err             string
	}{
		{"idle", 0, 0, idle, "timed out, total false"},
		{"progress", 59 * time.Second, 0, total, "timed out, total true"},
		{"rare progress", 61 * time.Second, 0, idle, "timed out, total false"},
		{"held", 0, 10 * time.Minute, 11 * time.Minute, "timed out, total false"},
		{"held for ever", 0, time.Hour, total, "timed out, total true"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer("")
			begin := time.Now()
			in, _ := p.Begin(context.Background(), []byte("7"), 0)
			if row.holds > 0 {
				time.AfterFunc(time.Nanosecond, func() { in.Hold(func(*Call) bool { return true }) })
				time.AfterFunc(row.holds, in.End)
			}
			for at := row.progress; 0 < at && at < total; at += row.progress {
				time.AfterFunc(at, func() { p.progress(1) })
			}
			_, err := p.Call(t.Context(), Request{Method: "m", Timeout: idle, MaxTimeout: total})
			if took := time.Since(begin); err.Error() != row.err || took != row.want || len(p.sent) != 2 {
				t.Errorf("%s: %v after %s, want %s after %s; sent %q", row.name, err, took, row.err, row.want, p.sent)
			}
		})
	}
}

// TestConnClose: Close ends every call once and refuses new ones. A call that is
// being sent meanwhile is reported once, too: by Done, or as an error of Go.
func TestConnClose(t *testing.T) {
	over := errors.New("over")
	for _, failure := range []error{nil, ErrClosed} {
		p := newPeer("")
		ends := p.start(t.Context(), t, Request{Method: "m"})
		done := func(_ Result, err error) { *ends = append(*ends, err.Error()) }
		err := p.Go(t.Context(), Request{Method: "m", Send: func([]byte) error {
			p.Close(over)
			p.Close(errors.New("again"))
			return failure
		}}, done)
		if want := []string{" lost: over", "lost: over"}; !errors.Is(err, failure) || failure == nil && !slices.Equal(*ends, want) || failure != nil && len(*ends) != 1 {
			t.Errorf("sending fails with %v: %v, ends %q", failure, err, *ends)
		}
		if err := p.Go(t.Context(), Request{Method: "m"}, nil); !errors.Is(err, ErrClosed) || !errors.Is(context.Cause(p.Context()), over) {
			t.Errorf("a call after the end: %v", err)
		}
		if in, err := p.Begin(context.Background(), []byte("7"), 0); err != nil || !errors.Is(context.Cause(in), over) {
			t.Errorf("a request after the end: %v", err)
		}
	}
}

// TestConnProgress: progress reaches its call in order and before the answer, and not
// after it. A panic in Done costs one call.
func TestConnProgress(t *testing.T) {
	p := newPeer("")
	var got []string
	progress := func(params []byte) { got = append(got, string(rawjson.Get(params, "progress"))) }
	_ = p.Go(t.Context(), Request{Method: "m", Meta: []byte("{}"), Progress: progress}, func(r Result, _ error) {
		got = append(got, string(r.JSON))
		panic("on purpose")
	})
	other := p.start(t.Context(), t, Request{Method: "m"})
	p.progress(1)
	p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":9}}`) // of another call
	p.progress(2)
	p.say(`{"jsonrpc":"2.0","id":1,"result":"done"}`)
	p.progress(3)
	p.say(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	check(t, "first call", got, "1", "2", `"done"`)
	check(t, "second call", *other, "{} <nil>")
	if log := p.log.String(); !strings.Contains(log, "on purpose") {
		t.Errorf("the log is %s", log)
	}
}
