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
	"mcpx/internal/upstream"
)

// Since its revision 2026-07-28, MCP has no initialize: the _meta of every request has
// the revision and the client's capabilities. A client may send requests of this and of
// earlier revisions.

// modernMark occurs in every request of 2026-07-28 and hardly ever elsewhere.
var modernMark = []byte(mcp.MetaKeyProtocolVersion)

// removedMethods are the methods that 2026-07-28 no longer has.
var removedMethods = map[string]bool{
	"initialize": true, "ping": true, "logging/setLevel": true, "resources/subscribe": true,
	"resources/unsubscribe": true, "roots/list": true, "shutdown": true,
}

// modernMethods are the methods that only 2026-07-28 has.
var modernMethods = map[string]Method{
	"server/discover":      (*Server).discover,
	"subscriptions/listen": (*Server).listen,
}

// cacheable are the methods whose results must have ttlMs and cacheScope.
var cacheable = map[string]bool{
	"server/discover": true, "tools/list": true, "prompts/list": true, "resources/list": true,
	"resources/templates/list": true, "resources/read": true,
}

// IsModern reports whether the params of a request are of 2026-07-28 or later.
func IsModern(params []byte) bool {
	if !bytes.Contains(params, modernMark) {
		return false
	}
	version, _ := rawjson.String(rawjson.Get(rawjson.Get(params, "_meta"), mcp.MetaKeyProtocolVersion))
	return mcp.IsModernProtocol(version)
}

// discover handles server/discover: the revisions, capabilities and instructions.
func (s *Server) discover(_ context.Context, c *Client, _ rpc.Message) ([]byte, error) {
	return json.Marshal(mcp.DiscoverResult{SupportedVersions: mcp.ValidProtocolVersions, Capabilities: capabilities, Instructions: s.instructions(c)})
}

// modern handles a request of 2026-07-28.
func (s *Server) modern(ctx context.Context, c *Client, m rpc.Message) ([]byte, error) {
	run, wrong := ModernMethod(m)
	if wrong != nil {
		return nil, wrong
	}
	meta := rawjson.Get(m.Params, "_meta")
	version, _ := rawjson.String(rawjson.Get(meta, mcp.MetaKeyProtocolVersion))
	capabilities := rawjson.Get(meta, mcp.MetaKeyClientCapabilities)
	request := c.forRequest(version, capabilities, rawjson.Get(meta, mcp.MetaKeyLogLevel))
	request.SetProgram(rawjson.Get(meta, mcp.MetaKeyClientInfo))
	result, err := s.rounds.run(ctx, request, m, func(ctx context.Context) ([]byte, error) {
		if request.resumed != nil {
			m.Params = withoutRound(m.Params)
		}
		return s.safely(ctx, run, request, m)
	})
	if err != nil {
		return nil, modernError(err)
	}
	return s.decorate(m.Method, result), nil
}

// ModernMethod returns the method for a request of 2026-07-28, or an error if the
// request is invalid.
func ModernMethod(m rpc.Message) (Method, *rpc.Error) {
	meta := rawjson.Get(m.Params, "_meta")
	version, ok := rawjson.String(rawjson.Get(meta, mcp.MetaKeyProtocolVersion))
	if !ok {
		return nil, invalidParams(`"_meta" must have ` + mcp.MetaKeyProtocolVersion)
	}
	if !mcp.IsValidProtocolVersion(version) {
		data, _ := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: mcp.ValidProtocolVersions, Requested: version})
		return nil, &rpc.Error{Code: mcp.UNSUPPORTED_PROTOCOL_VERSION, Message: "Unsupported protocol version: " + version, Data: data}
	}
	if rawjson.Kind(rawjson.Get(meta, mcp.MetaKeyClientCapabilities)) != '{' {
		return nil, invalidParams(`"_meta" must have ` + mcp.MetaKeyClientCapabilities)
	}
	run := modernMethods[m.Method]
	if run == nil && !removedMethods[m.Method] {
		run = Methods[m.Method]
	}
	if run == nil {
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "Method '%s' not found", m.Method)
	}
	return run, nil
}

// forRequest returns the client with the state that one request of 2026-07-28 declares.
func (c *Client) forRequest(revision string, capabilities, level []byte) *Client {
	request := newClient(c.id, c.Send)
	request.owner, request.Conn, request.Ended = c.owner, c.Conn, c.Ended
	request.caller = c.Caller()
	request.SetInitialized(revision, capabilities)
	request.markReachable()
	request.level = noLogs // unless the request names a level
	if name, ok := rawjson.String(level); ok && logLevels[name].level != "" {
		request.level = logLevels[name].level
	}
	return request
}

// decorate adds the members that 2026-07-28 requires in every result.
func (s *Server) decorate(method string, result []byte) []byte {
	if rawjson.Get(result, "resultType") == nil {
		result = rawjson.With(result, "resultType", []byte(`"complete"`))
	}
	meta := rawjson.Get(result, "_meta")
	if rawjson.Get(meta, mcp.MetaKeyServerInfo) == nil {
		info := rawjson.AppendString([]byte(`{"name":"mcpx","version":`), s.Version)
		result = rawjson.With(result, "_meta", rawjson.With(meta, mcp.MetaKeyServerInfo, append(info, '}')))
	}
	if cacheable[method] && rawjson.Get(result, "ttlMs") == nil {
		result = rawjson.With(rawjson.With(result, "ttlMs", []byte("0")), "cacheScope", []byte(`"private"`))
	}
	return result
}

// modernError returns an error with the code that it has in 2026-07-28.
func modernError(err error) error {
	e := WireError(err)
	if e.Code != executor.CodeResourceNotFound {
		return err
	}
	return &rpc.Error{Code: rpc.CodeInvalidParams, Message: e.Message, Data: e.Data}
}

// listen handles subscriptions/listen. It sends the notifications that the client wants
// until the client cancels the request, the front stops, or a reload removes the schema.
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
