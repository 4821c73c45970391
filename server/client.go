package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// Client is a client of a front, as one of its streams reaches it. It implements
// registry.Client: upstreams send it requests and notifications.
type Client struct {
	*conversation
	Send func(message []byte) error                                              // queues a message to the client; never waits
	ask  func(ctx context.Context, method string, params []byte) ([]byte, error) // replaces requests to the client; may be nil

	progressToken func() []byte // replaces the token of the request, if it may change during a call; may be nil
}

// conversation is what all streams of a client share.
type conversation struct {
	jsonrpc.BasicHandler // requests to clients have no time limits: a person may have to think

	id    string
	owner string // key for per-client state; differs from id for sessionless clients
	lazy  bool   // it sees inspect and exec, which never change
	Quota *Quota // bounds its calls; nil for a client without a session
	Conn  *jsonrpc.Conn

	initialized chan struct{} // closed when upstreams may reach the client
	Ended       chan struct{} // closed when the front ends
	start, stop sync.Once     // guard closing these

	mu           sync.Mutex
	revision     string // negotiated by initialize
	capabilities []byte
	level        string // the least severe log messages it wants
	left         bool   // it has sent notifications/exit
}

// ErrCancelled is the cause of the end of a request that its client cancelled.
var ErrCancelled = errors.New("cancelled by the client")

// NewClient returns a Client of the server whose messages go through send.
func (s *Server) NewClient(id string, send func(message []byte) error) *Client {
	c := newClient(id, s.lazy, send)
	c.Conn = jsonrpc.NewConn(jsonrpc.ConnOptions{Handler: c.conversation, Send: send, Prefix: "mcpx-", Log: s.log})
	return c
}

// NewSessionlessClient returns a Client for one request without a session. Programs on
// one machine cannot be told apart, so each request is another client; state between
// requests is kept for their owner.
func (s *Server) NewSessionlessClient(id, owner string) *Client {
	c := s.NewClient(id, nil)
	c.owner = owner
	return c
}

func newClient(id string, lazy bool, send func(message []byte) error) *Client {
	return &Client{Send: send, conversation: &conversation{
		id:          id,
		owner:       id,
		lazy:        lazy,
		initialized: make(chan struct{}),
		Ended:       make(chan struct{}),
	}}
}

// through returns the client as another stream reaches it.
func (c *Client) Through(send func(message []byte) error) *Client {
	return &Client{conversation: c.conversation, Send: send}
}

// ID implements registry.Client.
func (c *Client) ID() string { return c.id }

// Owner implements registry.Client.
func (c *Client) Owner() string { return c.owner }

// Lost implements jsonrpc.Handler.
func (c *conversation) Lost(error) error {
	return jsonrpc.Errorf(jsonrpc.CodeInternal, "the client has left")
}

// Cancelled implements jsonrpc.Handler.
func (c *conversation) Cancelled(string) error { return ErrCancelled }

// SetInitialized records the answer to initialize.
func (c *Client) SetInitialized(revision string, capabilities []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.capabilities = slices.Clone(capabilities)
	c.revision = revision
}

// isInitialized reports whether initialize has been answered.
func (c *Client) isInitialized() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision != ""
}

// markReachable lets upstreams reach the client, on notifications/initialized or the
// first request after initialize.
func (c *Client) markReachable() {
	if c.isInitialized() {
		c.start.Do(func() { close(c.initialized) })
	}
}

// End ends the subscription streams of the client, because its front ends.
func (c *Client) End() { c.stop.Do(func() { close(c.Ended) }) }

// exit records notifications/exit.
func (c *Client) exit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
}

func (c *Client) HasExited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left
}

// speaks reports whether the client speaks that revision or a later one.
func (c *Client) speaks(revision string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision >= revision
}

// requiredCapability has the capability that a client needs for each request.
var requiredCapability = map[string]string{
	"sampling/createMessage": "sampling",
	"elicitation/create":     "elicitation",
	"roots/list":             "roots",
}

// Request implements registry.Client. It fails at once if the client lacks the
// capability for the request.
func (c *Client) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	select {
	case <-c.initialized:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := c.checkCapability(method, params); err != nil {
		return nil, err
	}
	if c.ask != nil {
		return c.ask(ctx, method, params)
	}
	return jsonrpc.Wait(func(done jsonrpc.Done) {
		if err := c.Conn.Go(ctx, jsonrpc.Request{Method: method, Params: params, Send: c.Send}, done); err != nil {
			done(nil, nil, fmt.Errorf("%s could not be passed to the client: %s", method, err.Error())) // not %w: ErrClosed would mean the upstream's connection
		}
	})
}

// checkCapability returns why a client cannot handle a request, nil if it can.
func (c *Client) checkCapability(method string, params []byte) error {
	name := requiredCapability[method]
	declared := c.capability(name)
	if rawjson.IsNull(declared) {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: the client connected to mcpx has no %q capability", method, name)
	}
	mode, _ := rawjson.String(rawjson.Get(params, "mode"))
	if method == "elicitation/create" && mode == "url" && rawjson.IsNull(rawjson.Get(declared, "url")) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the client connected to mcpx has no \"elicitation.url\" capability", method)
	}
	return nil
}

// capability returns a capability as the client declared it.
func (c *Client) capability(name string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return rawjson.Get(c.capabilities, name)
}

// Notify implements registry.Client. It leaves out notifications that the client did
// not ask for or cannot use.
func (c *Client) Notify(method string, params []byte) {
	select {
	case <-c.initialized:
	default:
		return
	}
	if c.lazy && method == "notifications/tools/list_changed" || method == "notifications/message" && !c.wantsLog(params) {
		return
	}
	_ = c.Send(jsonrpc.AppendNotification(nil, method, params)) // a client that is gone needs no notice
}

// wantsLog reports whether the client wants a log message of that level.
func (c *Client) wantsLog(params []byte) bool {
	c.mu.Lock()
	least := c.level
	c.mu.Unlock()
	level, _ := rawjson.String(rawjson.Get(params, "level"))
	return least == "" || least != noLogs && slices.Index(registry.LogLevels, level) >= slices.Index(registry.LogLevels, least)
}

// noLogs is the level of a client that wants no log messages.
const noLogs = "none"

func (c *Client) setLevel(level string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.level = level
}

// progress returns a function that passes progress on with the client's token, nil if
// the request has none.
func (c *Client) progress(meta []byte) func(params []byte) {
	token := rawjson.Get(meta, "progressToken")
	if c.progressToken == nil && rawjson.IsNull(token) {
		return nil
	}
	return func(params []byte) {
		now := token
		if c.progressToken != nil {
			now = c.progressToken()
		}
		if !rawjson.IsNull(now) {
			c.Notify("notifications/progress", rawjson.With(params, "progressToken", now))
		}
	}
}
