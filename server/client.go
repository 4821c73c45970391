package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// Client is one client of a front, as one of its streams reaches it. It is what
// upstreams ask and tell things: a registry.Client.
type Client struct {
	*conversation
	send func(message []byte) error                                              // queues a message to the client; never waits
	ask  func(ctx context.Context, method string, params []byte) ([]byte, error) // how it is asked, if not by a request

	token func() []byte // of progress, if that may change during a call
}

// conversation is what the streams of a client share.
type conversation struct {
	id    string
	owner string // whom things are kept for between calls
	lazy  bool   // it sees inspect and exec, which never change
	quota *quota // bounds its calls; nil for a client without a session

	initialized chan struct{} // closed when the client can be asked and told things
	ended       chan struct{} // closed when its front ends
	start, stop sync.Once     // guard those

	mu           sync.Mutex
	revision     string // negotiated by initialize
	capabilities []byte
	level        string                          // the least level of log messages it wants
	calls        map[string]*inFlight            // by the id as it was written
	asked        map[string]chan jsonrpc.Message // what it was asked, by our id
	lastID       int
	left         bool // it has said goodbye
}

// through is the client by another stream.
func (c *Client) through(send func(message []byte) error) *Client {
	return &Client{conversation: c.conversation, send: send}
}

// errCancelled is the cause of a request's end by its client.
var errCancelled = errors.New("cancelled by the client")

// NewClient returns a Client of the server whose messages go through send.
func (s *Server) NewClient(id string, send func(message []byte) error) *Client {
	return newClient(id, s.lazy, send)
}

func newClient(id string, lazy bool, send func(message []byte) error) *Client {
	return &Client{send: send, conversation: &conversation{
		id:          id,
		owner:       id,
		lazy:        lazy,
		initialized: make(chan struct{}),
		ended:       make(chan struct{}),
		calls:       map[string]*inFlight{},
		asked:       map[string]chan jsonrpc.Message{},
	}}
}

// ID implements registry.Client.
func (c *Client) ID() string { return c.id }

// Owner implements registry.Client.
func (c *Client) Owner() string { return c.owner }

// inFlight is a request that the client can cancel.
type inFlight struct {
	cancel context.CancelCauseFunc // nil as long as there is nothing to cancel
	cause  error                   // why it was cancelled before
}

// begin makes a request one that the client can cancel; done ends that.
func (c *Client) begin(ctx context.Context, id []byte) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	key, held := string(id), &inFlight{cancel: cancel}
	c.hold(key, held)
	return ctx, func() {
		c.release(key, held)
		cancel(nil)
	}
}

// hold keeps a request until release.
func (c *Client) hold(id string, held *inFlight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[id] = held
}

func (c *Client) release(id string, held *inFlight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[id] == held { // not another with the same id
		delete(c.calls, id)
	}
}

// begun sets what cancels a request, and returns why it was cancelled before.
func (c *Client) begun(held *inFlight, cancel context.CancelCauseFunc) (cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held.cancel = cancel
	return held.cause
}

// cancelled ends the request that the client's notification names.
func (c *Client) cancelled(params []byte) {
	c.mu.Lock()
	held := c.calls[string(rawjson.Get(params, "requestId"))]
	c.mu.Unlock()
	if held != nil {
		c.cancel(held, errCancelled)
	}
}

// cancelAll ends every request.
func (c *Client) cancelAll(cause error) {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.calls))
	c.mu.Unlock()
	for _, held := range all {
		c.cancel(held, cause)
	}
}

func (c *Client) cancel(held *inFlight, cause error) {
	c.mu.Lock()
	held.cause = cause
	cancel := held.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// opened notes what the client said in initialize.
func (c *Client) opened(revision string, capabilities []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.capabilities = slices.Clone(capabilities)
	c.revision = revision
}

// isOpen reports whether initialize has been answered.
func (c *Client) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revision != ""
}

// listens notes that the client may be asked and told things: it has said so, or
// it goes on after initialize as if it had.
func (c *Client) listens() {
	if c.isOpen() {
		c.start.Do(func() { close(c.initialized) })
	}
}

// goodbye is closed when the front ends.
func (c *Client) goodbye() <-chan struct{} { return c.ended }

// end tells those who wait for nothing but the end that it has come.
func (c *Client) end() { c.stop.Do(func() { close(c.ended) }) }

// exit notes that the client has said goodbye.
func (c *Client) exit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = true
}

func (c *Client) exited() bool {
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

// answered takes the client's answer to what it was asked; false if it was not
// asked that.
func (c *Client) answered(m jsonrpc.Message) bool {
	c.mu.Lock()
	reply, ok := c.asked[string(m.ID)]
	delete(c.asked, string(m.ID))
	c.mu.Unlock()
	if ok {
		reply <- m // it has room for one
	}
	return ok
}

// gone answers what a client was asked that has left.
func (c *Client) gone() {
	c.mu.Lock()
	asked := c.asked
	c.asked = map[string]chan jsonrpc.Message{}
	c.mu.Unlock()
	for _, reply := range asked {
		reply <- jsonrpc.Message{Error: []byte(`{"code":-32603,"message":"the client has left"}`)}
	}
}

// abilities are the capabilities a client must have to be asked something.
var abilities = map[string]string{
	"sampling/createMessage": "sampling",
	"elicitation/create":     "elicitation",
	"roots/list":             "roots",
}

// Request implements registry.Client: it asks the client, if it is one that can
// be asked that, and waits for its answer.
func (c *Client) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	select {
	case <-c.initialized:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := c.able(method, params); err != nil {
		return nil, err
	}
	if c.ask != nil {
		return c.ask(ctx, method, params)
	}
	reply := make(chan jsonrpc.Message, 1)
	c.mu.Lock()
	c.lastID++
	id := fmt.Appendf(nil, `"mcpx-%d"`, c.lastID) // strings: no client's own ids look like these
	c.asked[string(id)] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.asked, string(id))
		c.mu.Unlock()
	}()
	if err := c.send(jsonrpc.AppendRequest(nil, id, method, params)); err != nil {
		return nil, fmt.Errorf("%s could not be passed to the client: %w", method, err)
	}
	select {
	case m := <-reply:
		if m.Error != nil {
			return nil, jsonrpc.ParseError(m.Error)
		}
		return m.Result, nil
	case <-ctx.Done():
		cause := context.Cause(ctx)
		params := rawjson.AppendString(append(append([]byte(`{"requestId":`), id...), `,"reason":`...), cause.Error())
		_ = c.send(jsonrpc.AppendNotification(nil, "notifications/cancelled", append(params, '}')))
		return nil, cause
	}
}

// able says why a client cannot be asked something.
func (c *Client) able(method string, params []byte) error {
	ability := abilities[method]
	declared := c.ability(ability)
	if rawjson.IsNull(declared) {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: the client connected to mcpx has no %q capability", method, ability)
	}
	mode, _ := rawjson.String(rawjson.Get(params, "mode"))
	if method == "elicitation/create" && mode == "url" && rawjson.IsNull(rawjson.Get(declared, "url")) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the client connected to mcpx has no \"elicitation.url\" capability", method)
	}
	return nil
}

// ability is a capability as the client declared it.
func (c *Client) ability(name string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return rawjson.Get(c.capabilities, name)
}

// Notify implements registry.Client. What the client did not ask for, or cannot
// see, is left out.
func (c *Client) Notify(method string, params []byte) {
	select {
	case <-c.initialized:
	default:
		return
	}
	if c.lazy && method == "notifications/tools/list_changed" || method == "notifications/message" && !c.wants(params) {
		return
	}
	_ = c.send(jsonrpc.AppendNotification(nil, method, params)) // a client that is gone needs no notice
}

// wants reports whether a log message is of a level the client wants.
func (c *Client) wants(params []byte) bool {
	c.mu.Lock()
	least := c.level
	c.mu.Unlock()
	level, _ := rawjson.String(rawjson.Get(params, "level"))
	return least == "" || least != "none" && slices.Index(registry.LogLevels, level) >= slices.Index(registry.LogLevels, least)
}

func (c *Client) setLevel(level string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.level = level
}

// progress passes progress on under the token the client gave; nil if it gave
// none.
func (c *Client) progress(meta []byte) func(params []byte) {
	token := rawjson.Get(meta, "progressToken")
	if c.token == nil && rawjson.IsNull(token) {
		return nil
	}
	return func(params []byte) {
		now := token
		if c.token != nil {
			now = c.token()
		}
		if !rawjson.IsNull(now) {
			c.Notify("notifications/progress", rawjson.With(params, "progressToken", now))
		}
	}
}
