package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"mcpx/internal/plain"
	"mcpx/internal/policy"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/upstream"
)

// Client is a client of a front, together with the stream on which mcpx sends messages
// to it. It implements upstream.Client: upstreams send it requests and notifications.
type Client struct {
	*conversation
	Send func(message []byte) error // queues a message to the client; never waits

	caller *policy.Caller // of the request that this Client is for; nil: the latest caller

	// For a request of 2026-07-28.
	method  string          // it accepts no requests during this method; "" if it does
	round   *multiRoundCall // gets requests to the client; nil: there is no round
	resumed *resumedCall    // what the call goes on with; may be nil
}

// conversation is the state that all streams of a client share.
type conversation struct {
	rpc.BasicHandler // requests to clients have no time limits: a person may have to think

	id    string
	owner string // key for per-client state; differs from id for sessionless clients

	declared atomic.Pointer[declaration] // by the last request of 2026-07-28; may be nil

	Quota *Quota // bounds its calls; nil for a client without a client session
	Conn  *rpc.Conn
	lists readLists

	Timeout time.Duration // of a request; 0: only the upstream's own limits

	latest atomic.Pointer[policy.Caller] // of the last request, for notifications; nil for a caller without a name

	program atomic.Pointer[upstream.Program] // nil: the client has not named it

	Exited atomic.Bool // the client has sent notifications/exit

	initialized chan struct{} // closed when upstreams may send messages to the client
	Ended       chan struct{} // closed by End
	start, stop sync.Once     // close these channels once

	mu           sync.Mutex
	revision     string // negotiated by initialize
	capabilities []byte
	level        string          // the least severe level of log messages that it wants
	mentioned    map[string]bool // new servers that inspect has mentioned
}

// ErrCanceled is the cause when a client cancels its request.
var ErrCanceled = errors.New("canceled by the client")

// NewClient returns a Client of the server whose messages go through send.
func (s *Server) NewClient(id string, send func(message []byte) error) *Client {
	return s.newClient(id, requestPrefix, send)
}

// requestPrefix begins the IDs of requests to clients.
const requestPrefix = "mcpx-"

// newClient returns a Client. The IDs of the requests to it have that prefix.
func (s *Server) newClient(id, prefix string, send func(message []byte) error) *Client {
	c := newClient(id, send)
	c.lists.current = func(method string) uint64 { return s.listHash(c, method) }
	c.Conn = rpc.NewConn(rpc.ConnOptions{Handler: c.conversation, Send: send, Prefix: prefix, Log: s.Log})
	return c
}

// NewSessionlessClient returns a Client for one request without a client session. mcpx
// cannot distinguish programs on the same machine, so each request is another client;
// state between requests belongs to the owner.
func (s *Server) NewSessionlessClient(id, owner string) *Client {
	c := s.NewClient(id, nil)
	c.owner = owner
	return c
}

func newClient(id string, send func(message []byte) error) *Client {
	return &Client{Send: send, conversation: &conversation{
		id:    id,
		owner: id,

		initialized: make(chan struct{}),
		Ended:       make(chan struct{}),
	}}
}

// Through returns the same client with another stream for its messages.
func (c *Client) Through(send func(message []byte) error) *Client {
	return &Client{conversation: c.conversation, Send: send, caller: c.caller}
}

// As returns the same client for a request of that caller. A client session belongs to
// one caller, but what the caller may use can change with its token.
func (c *Client) As(caller *policy.Caller) *Client {
	if caller == nil {
		return c
	}
	c.latest.Store(caller)
	return &Client{conversation: c.conversation, Send: c.Send, caller: caller}
}

// ID implements upstream.Client.
func (c *Client) ID() string { return c.id }

// Owner implements upstream.Client.
func (c *Client) Owner() string { return c.owner }

// Caller implements upstream.Client.
func (c *Client) Caller() *policy.Caller {
	if c.caller != nil {
		return c.caller
	}
	return c.latest.Load()
}

// Lost implements rpc.Handler.
func (c *conversation) Lost(error) error {
	return rpc.Errorf(rpc.CodeInternal, "the client has left")
}

// Canceled implements rpc.Handler.
func (c *conversation) Canceled(reason string) error {
	if reason == "" {
		return ErrCanceled
	}
	return cancellation(plain.Cut(reason, reasonBytes))
}

// reasonBytes bounds the reason of a cancellation that upstreams get.
const reasonBytes = 1000

// cancellation is an ErrCanceled with the reason that the client gave.
type cancellation string

func (c cancellation) Error() string { return string(c) }

// Unwrap makes errors.Is find ErrCanceled.
func (c cancellation) Unwrap() error { return ErrCanceled }

// SetInitialized records the result of initialize.
func (c *Client) SetInitialized(revision string, capabilities []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.capabilities = slices.Clone(capabilities)
	c.revision = revision
}

// maxProgram bounds the name and the version of a client's program, in bytes each. They are
// part of a sealed ID.
const maxProgram = 64

// SetProgram records the name and the version in a clientInfo.
func (c *Client) SetProgram(info []byte) {
	member := func(key string) string {
		text, _ := rawjson.String(rawjson.Get(info, key))
		text = strings.Map(func(r rune) rune {
			if r == utf8.RuneError || !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, text[:plain.RuneStart(text, 4*maxProgram)])
		return plain.Cut(text, maxProgram)
	}
	c.program.Store(&upstream.Program{Name: member("name"), Version: member("version")})
}

// Program returns what SetProgram has recorded.
func (c *Client) Program() (p upstream.Program) {
	if known := c.program.Load(); known != nil {
		p = *known
	}
	return p
}

// markReachable lets upstreams send messages to the client. It is called on
// notifications/initialized and on each request after initialize.
func (c *Client) markReachable() {
	if c.Revision() != "" {
		c.start.Do(func() { close(c.initialized) })
	}
}

// End ends the subscription streams of the client, because its client session is closed
// or its front stops.
func (c *Client) End() { c.stop.Do(func() { close(c.Ended) }) }

// mention records that inspect mentions a new server; false if it has done so before.
func (c *Client) mention(server string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mentioned[server] || len(c.mentioned) == maxMentioned {
		return false
	}
	if c.mentioned == nil {
		c.mentioned = map[string]bool{}
	}
	c.mentioned[server] = true
	return true
}

// maxMentioned bounds how many names of new servers are remembered for a client.
const maxMentioned = 10_000

// requiredCapability maps each request to the capability that the client needs for it.
var requiredCapability = map[string]string{
	"sampling/createMessage": "sampling",
	"elicitation/create":     "elicitation",
	"roots/list":             "roots",
}

// Request implements upstream.Client. It fails at once if the client lacks the
// capability for the request.
func (c *Client) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	select {
	case <-c.initialized:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := c.Supports(method, params); err != nil {
		return nil, err
	}
	if c.round != nil || c.method != "" {
		responses, err := c.requestInput(ctx, []upstream.Input{{Key: "input", Method: method, Params: params}})
		if err != nil {
			return nil, err
		}
		return responses[0], nil
	}
	result, err := rpc.Wait(func(done rpc.Done) {
		if err := c.Conn.Go(ctx, rpc.Request{Method: method, Params: params, Send: c.Send}, done); err != nil {
			done(rpc.Result{}, fmt.Errorf("could not send %s to the client: %s", method, err.Error())) // not %w: ErrClosed would mean the upstream's connection
		}
	})
	return result.JSON, err
}

// RequestAll implements upstream.InputClient. A client of 2026-07-28 gets all requests in
// one round, under their own keys.
func (c *Client) RequestAll(ctx context.Context, inputs []upstream.Input) ([][]byte, error) {
	if c.round == nil && c.method == "" || len(inputs) == 0 {
		return upstream.RequestEach(ctx, c, inputs)
	}
	for _, input := range inputs {
		if err := c.Supports(input.Method, input.Params); err != nil {
			return nil, err
		}
	}
	return c.requestInput(ctx, inputs)
}

// requestInput requests input during a request of 2026-07-28.
func (c *Client) requestInput(ctx context.Context, inputs []upstream.Input) ([][]byte, error) {
	if c.round == nil {
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "%s: the client accepts no requests during %s", inputs[0].Method, c.method)
	}
	return c.round.requestInput(ctx, inputs)
}

// Revision implements upstream.InputClient. It is empty before initialize.
func (c *Client) Revision() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision
}

// Capabilities implements upstream.InputClient.
func (c *Client) Capabilities() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.capabilities
}

// Supports returns why a client cannot handle a request, nil if it can.
func (c *Client) Supports(method string, params []byte) error {
	name := requiredCapability[method]
	declared := rawjson.Get(c.Capabilities(), name)
	if rawjson.IsNull(declared) {
		return rpc.Errorf(rpc.CodeMethodNotFound, "%s: the client connected to mcpx has no %q capability", method, name)
	}
	mode, _ := rawjson.String(rawjson.Get(params, "mode"))
	if method == "elicitation/create" && mode == "url" && rawjson.IsNull(rawjson.Get(declared, "url")) {
		return rpc.Errorf(rpc.CodeInvalidParams, "%s: the client connected to mcpx has no \"elicitation.url\" capability", method)
	}
	return nil
}

// Notify implements upstream.Client. It drops notifications that the client does not
// want or cannot use.
func (c *Client) Notify(method string, params []byte) {
	select {
	case <-c.initialized:
	default:
		return
	}
	if method == "notifications/message" && !c.wantsLog(params) || !c.lists.isNews(method) {
		return
	}
	c.send(method, params)
}

// send sends a notification to the client.
func (c *Client) send(method string, params []byte) {
	_ = c.Send(rpc.AppendNotification(nil, method, params)) // on failure the client is gone
}

// progress returns a function that passes progress on with the client's token, nil if
// the request has none.
func (c *Client) progress(meta []byte) func(params []byte) {
	token := rawjson.Get(meta, "progressToken")
	if c.round == nil && rawjson.IsNull(token) {
		return nil
	}
	return func(params []byte) {
		now := token
		if c.round != nil {
			now = c.round.stream.Load().token
		}
		if !rawjson.IsNull(now) {
			c.Notify("notifications/progress", rawjson.With(params, "progressToken", now))
		}
	}
}

// NewSharedClient returns a Client whose client session may have copies on other replicas. No
// two of them use the same request IDs, so a response belongs to one of them.
func (s *Server) NewSharedClient(id string, send func(message []byte) error) *Client {
	c := s.newClient(id, requestPrefix+rand.Text()[:8]+"-", send)
	c.lists.assumed = &assumedLists{server: s, client: c}
	return c
}

// IsElsewhere reports whether a response is for a request that another replica has sent.
func (c *Client) IsElsewhere(id []byte) bool {
	return bytes.HasPrefix(id, []byte(`"`+requestPrefix)) && !c.Conn.Sent(id)
}

// Continue sets the state of a client session that another replica has opened. The level of
// log messages is empty if the client has not set one.
func (c *Client) Continue(revision string, capabilities []byte, level string) {
	c.SetInitialized(revision, capabilities)
	if c.logLevel() == "" { // the client may have set it meanwhile
		c.setLevel(level)
	}
	c.markReachable()
}
