package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/policy"
	"mcpx/internal/rpc"
	"mcpx/registry/link"
)

// fixture is a session, its link and its host.
type fixture struct {
	*Session
	peer *peer
	host *host
}

// inTime runs a test of a session in a synctest bubble, where an hour takes no time and no
// goroutine may be left. No handshake was made yet.
func inTime(t *testing.T, test func(t *testing.T, f fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := fixture{peer: newPeer(), host: &host{}}
		f.Session = New(Options{
			Host: f.host, Config: &config.Upstream{Name: "a"}, Link: f.peer, Log: zerolog.New(zerolog.SyncWriter(&f.host.log)), Version: "1.2.3",
		})
		f.Background(f.Run)
		defer f.Close()
		test(t, f)
	})
}

// call makes a call for a client, which may be nil, with the default limits.
func (f fixture) call(ctx context.Context, c Client) ([]byte, error) {
	result, err := f.Call(ctx, Request{Method: "tools/call", Meta: []byte("{}"), Client: c}, Limits{Idle: time.Minute, Total: 15 * time.Minute})
	return result.Take(), err
}

// errEnough is the cause of a call that begin cancels.
var errEnough = errors.New("enough")

// begin sends a call and returns its ID. cancel cancels it and returns how it ended.
func (f fixture) begin(t *testing.T, c Client) (id []byte, cancel func() error) {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := f.call(ctx, c)
		ended <- err
	}()
	synctest.Wait()
	if calls := f.peer.got("tools/call"); len(calls) > 0 {
		id = calls[len(calls)-1].ID
	}
	return id, sync.OnceValue(func() error {
		stop(errEnough)
		return <-ended
	})
}

// peer is an upstream inside the test, and the link to it. It responds to the methods in
// its table, and to no others.
type peer struct {
	held atomic.Int64 // messages whose room is not free

	arrivals chan link.Delivery
	ctx      context.Context // ends with the link
	end      context.CancelCauseFunc

	mu       sync.Mutex
	handlers map[string]func(m rpc.Message) // by method; "" handles responses
	messages []rpc.Message                  // from the session
}

func newPeer() *peer {
	p := &peer{arrivals: make(chan link.Delivery, 1000), handlers: map[string]func(m rpc.Message){}}
	p.ctx, p.end = context.WithCancelCause(context.Background())
	p.answer("ping", done, 0)
	p.answer("initialize", done, 0)
	return p
}

// on sets the handler for a method; nil: the peer ignores it. The handler must not wait.
func (p *peer) on(method string, handle func(m rpc.Message)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handlers[method] = handle
}

// answer makes the peer respond to a method after a while. outcome is the member "result"
// or "error" of the response.
func (p *peer) answer(method, outcome string, takes time.Duration) {
	p.on(method, func(m rpc.Message) { time.AfterFunc(takes, func() { p.respond(m.ID, outcome) }) })
}

// done is the outcome of a request that the peer has handled.
const done = `"result":{}`

// respond responds to a request.
func (p *peer) respond(id []byte, outcome string) {
	p.send(`{"jsonrpc":"2.0","id":%s,%s}`, id, outcome)
}

// send sends a message to the session.
func (p *peer) send(format string, args ...any) {
	p.held.Add(1)
	p.arrivals <- link.Delivery{Line: rpc.Line{Text: fmt.Appendf(nil, format, args...), Room: rpc.NewRoom(func() { p.held.Add(-1) })}}
}

// say is send, and waits until the message is handled.
func (p *peer) say(format string, args ...any) {
	p.send(format, args...)
	synctest.Wait()
}

// request sends a request to the session and returns the response, "" if there is none
// yet.
func (p *peer) request(id, method, params string) string {
	p.say(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, method, params)
	return p.response(id)
}

// response returns the last response to a request of the peer, as a result or an error.
func (p *peer) response(id string) string {
	for _, m := range slices.Backward(p.got("")) {
		if string(m.ID) == `"`+id+`"` {
			return string(slices.Concat(m.Result, m.Error))
		}
	}
	return ""
}

// got returns the messages that had this method.
func (p *peer) got(method string) []rpc.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.messages), func(m rpc.Message) bool { return m.Method != method })
}

// Send implements link.Link.
func (p *peer) Send(message []byte) error {
	m, err := rpc.Parse(slices.Clone(message))
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.messages = append(p.messages, m)
	handle := p.handlers[m.Method]
	p.mu.Unlock()
	if handle != nil && p.ctx.Err() == nil { // the dead do not answer
		handle(m)
	}
	if p.ctx.Err() != nil {
		return rpc.ErrClosed
	}
	return nil
}

// Run implements link.Link.
func (p *peer) Run(receive func(link.Delivery)) error {
	for {
		select {
		case d := <-p.arrivals:
			receive(d)
		case <-p.ctx.Done():
			return context.Cause(p.ctx)
		}
	}
}

// Close implements link.Link.
func (p *peer) Close() { p.end(errors.New("closed")) }

// die ends the link.
func (p *peer) die() { p.end(&link.Failure{Reason: "died on purpose", Stderr: []string{"ouch"}}) }

// host is a Host that records notifications. It hides the word "sesame".
type host struct {
	log       strings.Builder
	only      Client
	isEarlier atomic.Bool
	panics    bool // in Notified

	mu       sync.Mutex
	uris     []string
	notified []string // method, params and recipients
}

func (h *host) Redact(text string) string  { return strings.ReplaceAll(text, "sesame", "***") }
func (h *host) OnlyClient() Client         { return h.only }
func (h *host) LogLevel() string           { return "warning" }
func (h *host) Record(Direction, []byte)   {}
func (h *host) Denied(*link.Failure) error { return nil }
func (h *host) MaySpeak2026() bool         { return !h.isEarlier.Load() }
func (h *host) SpeaksEarlier()             { h.isEarlier.Store(true) }

func (h *host) Subscriptions() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.uris)
}

// subscribe adds a URI to the subscriptions.
func (h *host) subscribe(uri string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.uris = append(h.uris, uri)
}

func (h *host) Notified(method string, params []byte, to []Client) {
	if h.panics {
		panic("on purpose")
	}
	text := []string{method}
	if params != nil {
		text = append(text, string(params))
	}
	for _, c := range to {
		text = append(text, c.ID())
	}
	slices.Sort(text[min(2, len(text)):])
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notified = append(h.notified, strings.Join(text, " "))
}

// heard returns the notifications since the last time.
func (h *host) heard() (notified []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	notified, h.notified = h.notified, nil
	return notified
}

// client is a client that responds with its own name.
type client struct {
	id, owner string
	reply     func(ctx context.Context) ([]byte, error) // its response, if it is another
	waiting   atomic.Int32                              // requests without a response

	mu    sync.Mutex
	asked []string // requests so far
}

// hold makes the client's responses wait for release.
func (c *client) hold() (release func()) {
	released := make(chan struct{})
	c.reply = func(ctx context.Context) ([]byte, error) {
		select {
		case <-released:
			return c.from(), nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return func() { close(released) }
}

// from returns the client's usual response.
func (c *client) from() []byte { return fmt.Appendf(nil, `{"from":%q}`, c.id) }

func (c *client) ID() string             { return c.id }
func (c *client) Owner() string          { return cmp.Or(c.owner, c.id) }
func (c *client) Caller() *policy.Caller { return nil }
func (c *client) Notify(string, []byte)  {}

func (c *client) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	c.mu.Lock()
	c.asked = append(c.asked, method+" "+string(params))
	c.mu.Unlock()
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	if c.reply != nil {
		return c.reply(ctx)
	}
	return c.from(), nil
}

// inputClient is a client with capabilities and a revision.
type inputClient struct {
	*client
	capabilities, revision string
}

func (c inputClient) Capabilities() []byte { return []byte(c.capabilities) }
func (c inputClient) Revision() string     { return c.revision }

func (c inputClient) RequestAll(ctx context.Context, inputs []Input) ([][]byte, error) {
	return RequestEach(ctx, c, inputs)
}

// after waits, and then until every goroutine is idle.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// text returns the text of an error, "" for nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
