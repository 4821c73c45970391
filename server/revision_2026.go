package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/executor"
	"mcpx/internal/policy"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/upstream"
)

// Since its revision 2026-07-28, MCP has no initialize: the _meta of every request has
// the revision and the client's capabilities. A client may send requests of this and of
// earlier revisions.

// mark2026 occurs in every request of 2026-07-28 and hardly ever elsewhere.
var mark2026 = []byte(mcp.MetaKeyProtocolVersion)

// Is2026 reports whether the params of a request are of 2026-07-28 or later.
func Is2026(params []byte) bool {
	if !bytes.Contains(params, mark2026) {
		return false
	}
	return readDeclared(rawjson.Get(params, "_meta")).is2026()
}

// discover handles server/discover: the revisions, capabilities and instructions.
func (s *Server) discover(_ context.Context, c *Client, _ rpc.Message) ([]byte, error) {
	return json.Marshal(mcp.DiscoverResult{SupportedVersions: mcp.ValidProtocolVersions, Capabilities: capabilities, Instructions: s.instructions(c)})
}

// go2026 handles a request of 2026-07-28, which start starts. It never waits.
func (s *Server) go2026(in *rpc.Incoming, c *Client, m rpc.Message, d declared, start func(c *Client, m rpc.Message, done rpc.Done), done rpc.Done) {
	if wrong := d.check(m.Method); wrong != nil {
		done(rpc.Result{}, wrong)
		return
	}
	s.rounds.run(in, c.forRequest(d), m, d.token, start, func(result rpc.Result, err error) {
		if err != nil {
			done(rpc.Result{}, error2026(err))
			return
		}
		done(result.With(s.decorate(m.Method, result.JSON)), nil)
	})
}

// call2026 is go2026 for a method that waits.
func (s *Server) call2026(in *rpc.Incoming, c *Client, m rpc.Message) ([]byte, error) {
	result, err := rpc.Wait(func(done rpc.Done) {
		s.go2026(in, c, m, readDeclared(rawjson.Get(m.Params, "_meta")), func(c *Client, m rpc.Message, done rpc.Done) {
			go func() {
				result, err := s.safely(in, Methods[m.Method].Run, c, m)
				done(rpc.NewResult(result), err)
			}()
		}, done)
	})
	return result.Take(), err
}

// Check2026 returns an error if a request of 2026-07-28 is invalid.
func Check2026(m rpc.Message) *rpc.Error {
	return readDeclared(rawjson.Get(m.Params, "_meta")).check(m.Method)
}

// declared is what the _meta of a request of 2026-07-28 says about its client, and its
// progress token, all as they are written; nil for what is missing.
type declared struct{ revision, capabilities, level, info, token []byte }

// readDeclared reads the _meta of a request.
func readDeclared(meta []byte) (d declared) {
	for key, value := range rawjson.Members(meta) {
		switch key {
		case mcp.MetaKeyProtocolVersion:
			d.revision = value
		case mcp.MetaKeyClientCapabilities:
			d.capabilities = value
		case mcp.MetaKeyLogLevel:
			d.level = value
		case mcp.MetaKeyClientInfo:
			d.info = value
		case "progressToken":
			d.token = value
		}
	}
	return d
}

// is2026 reports whether the request is of 2026-07-28 or later.
func (d declared) is2026() bool {
	version, _ := rawjson.View(d.revision)
	return mcp.IsModernProtocol(version)
}

// check returns an error if the request, which has that method, is invalid.
func (d declared) check(method string) *rpc.Error {
	version, ok := rawjson.View(d.revision)
	if !ok {
		return invalidParams(`"_meta" must have ` + mcp.MetaKeyProtocolVersion)
	}
	if !mcp.IsValidProtocolVersion(version) {
		data, _ := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: mcp.ValidProtocolVersions, Requested: version})
		return &rpc.Error{Code: mcp.UNSUPPORTED_PROTOCOL_VERSION, Message: "Unsupported protocol version: " + version, Data: data}
	}
	if rawjson.Kind(d.capabilities) != '{' {
		return invalidParams(`"_meta" must have ` + mcp.MetaKeyClientCapabilities)
	}
	if known, ok := Methods[method]; !ok || known.IsOld {
		return methodNotFound(method)
	}
	return nil
}

// maxDeclared is the longest declaration of a client that is kept, in bytes.
const maxDeclared = 8 << 10

// size returns the number of bytes.
func (d declared) size() int {
	return len(d.revision) + len(d.capabilities) + len(d.level) + len(d.info)
}

// is reports whether another request declares the same.
func (d declared) is(other declared) bool {
	return bytes.Equal(d.revision, other.revision) && bytes.Equal(d.capabilities, other.capabilities) && bytes.Equal(d.level, other.level) && bytes.Equal(d.info, other.info)
}

// declaration is what a client has declared, and its state for requests that declare the same:
// nearly all of them.
type declaration struct {
	declared
	state *conversation
}

// forRequest returns the client with the state that one request of 2026-07-28 declares.
func (c *Client) forRequest(d declared) *Client {
	if c.owner != c.id { // it is for this request only
		c.describe(d)
		return c
	}
	last := c.declared.Load()
	if last == nil || !last.is(d) {
		last = c.declare(d)
		if d.size() <= maxDeclared {
			c.declared.Store(last)
		}
	}
	return &Client{conversation: last.state, Send: c.Send, caller: c.Caller()}
}

// declare returns the declaration of a client.
func (c *Client) declare(d declared) *declaration {
	d = declared{revision: bytes.Clone(d.revision), capabilities: bytes.Clone(d.capabilities), level: bytes.Clone(d.level), info: bytes.Clone(d.info)}
	client := newClient(c.id, nil)
	client.owner, client.Conn, client.Ended = c.owner, c.Conn, c.Ended
	client.describe(d)
	return &declaration{d, client.conversation}
}

// describe sets the state that a request declares.
func (c *Client) describe(d declared) {
	revision, _ := rawjson.String(d.revision)
	c.SetInitialized(revision, d.capabilities)
	c.markReachable()
	c.level = noLogs // unless the request names a level
	if name, ok := rawjson.View(d.level); ok && logLevels[name].level != "" {
		c.level = logLevels[name].level
	}
	c.SetProgram(d.info)
}

// decorate adds the members that 2026-07-28 requires in every result.
func (s *Server) decorate(method string, result []byte) []byte {
	if rawjson.Kind(result) != '{' {
		return result
	}
	var meta []byte
	hasType, isCached := false, !Methods[method].IsCached
	for key, value := range rawjson.Members(result) {
		switch key {
		case "_meta":
			meta = value
		case "resultType":
			hasType = true
		case "ttlMs":
			isCached = true
		}
	}
	if meta != nil && rawjson.Get(meta, mcp.MetaKeyServerInfo) == nil {
		result = rawjson.With(result, "_meta", rawjson.With(meta, mcp.MetaKeyServerInfo, s.info))
	}
	result = bytes.TrimRight(result, " \t\r\n")
	b := append(make([]byte, 0, len(result)+len(s.info)+decoration), result[:len(result)-1]...)
	if !hasType {
		b = rawjson.AppendMember(b, "resultType", []byte(`"complete"`))
	}
	if meta == nil {
		b = append(rawjson.AppendMember(rawjson.AppendMember(b, "_meta", []byte("{")), mcp.MetaKeyServerInfo, s.info), '}')
	}
	if !isCached {
		b = rawjson.AppendMember(rawjson.AppendMember(b, "ttlMs", []byte("0")), "cacheScope", []byte(`"private"`))
	}
	return append(b, '}')
}

// decoration is more than the bytes that decorate adds, without the server's info.
const decoration = 200

// error2026 returns an error with the code that it has in 2026-07-28.
func error2026(err error) error {
	e := WireError(err)
	if e.Code != executor.CodeResourceNotFound {
		return err
	}
	return &rpc.Error{Code: rpc.CodeInvalidParams, Message: e.Message, Data: e.Data}
}

// listen handles subscriptions/listen. It sends the notifications that the client wants
// until the client cancels the request, the front stops, or a reload removes the profile.
func (s *Server) listen(ctx context.Context, c *Client, m rpc.Message) ([]byte, error) {
	filter := rawjson.Get(m.Params, "notifications")
	tag := rawjson.With([]byte("{}"), mcp.MetaKeySubscriptionID, m.ID)
	l := &subscriptionStream{id: c.id + " " + rand.Text(), client: c, tag: tag, wanted: map[string]bool{}}
	l.lists.current = func(method string) uint64 { return s.listHash(c, method) }
	granted := []byte("{")
	for _, kind := range upstream.Listable {
		if kind == "tools" && s.lazy {
			continue // inspect and exec never change
		}
		if string(rawjson.Get(filter, kind+"ListChanged")) == "true" {
			l.wanted[upstream.ListChanged(kind)] = true
			l.lists.rememberAll(kind)
			granted = rawjson.AppendMember(granted, kind+"ListChanged", []byte("true"))
		}
	}
	granted = append(rawjson.AppendMember(granted, "resourceSubscriptions", rawjson.Get(filter, "resourceSubscriptions")), '}')
	s.registry.AttachStream(l)
	defer s.detachLater(l)
	for uri := range rawjson.Elements(rawjson.Get(filter, "resourceSubscriptions")) {
		params := rawjson.With([]byte("{}"), "uri", uri)
		if _, err := s.executor.Relay(ctx, executor.Relay{Client: l, Method: "resources/subscribe", Params: params}); err != nil {
			return nil, err
		}
	}
	l.acknowledge(rawjson.With(rawjson.With([]byte("{}"), "_meta", tag), "notifications", granted))
	select {
	case <-ctx.Done():
	case <-c.Ended:
	case <-s.registry.Done():
	}
	return rawjson.With([]byte("{}"), "_meta", tag), nil
}

// subscriptionStream is the stream of one subscriptions/listen request. The registry
// treats it as a separate client.
type subscriptionStream struct {
	id     string
	client *Client
	tag    []byte          // _meta of its notifications
	wanted map[string]bool // methods, besides notifications/resources/updated
	lists  readLists       // as they were when the stream was opened

	mu           sync.Mutex
	acknowledged bool
	early        [][2]string // method and params of notifications before the acknowledgement
}

// acknowledge sends the acknowledgement and the early notifications. Then Notify sends
// directly.
func (l *subscriptionStream) acknowledge(params []byte) {
	l.client.send(mcp.MethodNotificationSubscriptionsAcknowledged, params)
	for {
		l.mu.Lock()
		early := l.early
		l.early = nil
		l.acknowledged = len(early) == 0
		l.mu.Unlock()
		if len(early) == 0 {
			return
		}
		for _, n := range early {
			l.client.send(n[0], []byte(n[1]))
		}
	}
}

// ID implements upstream.Client.
func (l *subscriptionStream) ID() string { return l.id }

// Owner implements upstream.Client.
func (l *subscriptionStream) Owner() string { return l.id }

// Caller implements upstream.Client.
func (l *subscriptionStream) Caller() *policy.Caller { return l.client.Caller() }

// Request implements upstream.Client. It always fails, because the stream carries only
// notifications.
func (l *subscriptionStream) Request(_ context.Context, method string, _ []byte) ([]byte, error) {
	return nil, rpc.Errorf(rpc.CodeMethodNotFound, "%s: the client has no pending call", method)
}

// Notify implements upstream.Client.
func (l *subscriptionStream) Notify(method string, params []byte) {
	if method != "notifications/resources/updated" && (!l.wanted[method] || !l.lists.isNews(method)) {
		return
	}
	params = rawjson.With(rawjson.OrObject(params), "_meta", l.tag)
	l.mu.Lock()
	acknowledged := l.acknowledged
	if !acknowledged && len(l.early) < maxEarly {
		l.early = append(l.early, [2]string{method, string(params)})
	}
	l.mu.Unlock()
	if acknowledged {
		l.client.send(method, params)
	}
}

// maxEarly bounds the notifications that are stored before the acknowledgement.
const maxEarly = 1000

// CheckParameterHeaders returns an error if the headers of a call differ from the
// arguments that they repeat (x-mcp-header). Only flat mode has such tools.
func (s *Server) CheckParameterHeaders(c *Client, h http.Header, m rpc.Message) error {
	if s.lazy || m.Method != "tools/call" {
		return nil
	}
	name, _ := rawjson.String(rawjson.Get(m.Params, "name"))
	schema := rawjson.Get(s.executor.Exposure(c).Definition(name), "inputSchema")
	if !bytes.Contains(schema, []byte(`"x-mcp-header"`)) {
		return nil
	}
	return mcp.ValidateParamHeadersLookup(func(name string) (string, bool) {
		values := h.Values(name)
		return h.Get(name), len(values) > 0
	}, &mcp.Tool{RawInputSchema: schema}, m.Params)
}
