package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/logging"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/telemetry"
)

// Method runs one request. It returns the result, or an error whose code and data the
// client gets.
type Method func(s *Server, ctx context.Context, c *Client, m rpc.Message) (result []byte, err error)

// Methods is the table of methods.
var Methods = map[string]Method{
	"initialize":               (*Server).initialize,
	"ping":                     (*Server).ping,
	"tools/list":               (*Server).listTools,
	"tools/call":               (*Server).callToolAndWait,
	"prompts/list":             (*Server).list,
	"prompts/get":              (*Server).relay,
	"resources/list":           (*Server).list,
	"resources/templates/list": (*Server).list,
	"resources/read":           (*Server).relay,
	"resources/subscribe":      (*Server).relay,
	"resources/unsubscribe":    (*Server).relay,
	"completion/complete":      (*Server).relay,
	"logging/setLevel":         (*Server).setLogLevel,
	"roots/list":               (*Server).listRoots,
	"shutdown":                 (*Server).ping, // some clients know it from other protocols; notifications/exit stops mcpx
}

// begin handles a notification or a response and returns nil. It registers a request, so
// that the client can cancel it, and returns its context and the function that starts it.
func (s *Server) begin(ctx context.Context, c *Client, m rpc.Message) (request context.Context, start func(respond func(response []byte))) {
	if c.Conn.Receive(m, nil) {
		return nil, nil
	}
	if m.IsNotification() {
		s.notified(c, m)
		return nil, nil
	}
	c.markReachable()
	s.Log.Debug().Str("client", c.id).Bytes("request", m.ID).Str("method", m.Method).Msg("request")
	ctx, span := s.startSpan(ctx, c, m)
	in, _ := c.Conn.Begin(ctx, m.ID, 0)
	return in, func(respond func(response []byte)) {
		ctx, stop := c.withTimeout(in)
		s.serve(ctx, c, m, func(result, line []byte, err error) {
			isCancelled := in.IsCancelledBy(ErrCancelled)
			in.End()
			stop()
			endSpan(span, isCancelled, result, err)
			if m.Method == "tools/list" && s.Listed != nil {
				s.Listed()
			}
			switch {
			case isCancelled:
				respond(nil)
			case err != nil:
				respond(rpc.AppendError(nil, m.ID, WireError(err)))
			default:
				respond(rpc.ResponseIn(line, m.ID, result))
			}
		})
	}
}

// withTimeout returns the context in which a request of the client is served. stop frees it.
func (c *Client) withTimeout(request context.Context) (ctx context.Context, stop context.CancelFunc) {
	if c.Timeout == 0 {
		return request, func() {}
	}
	return context.WithTimeoutCause(request, c.Timeout, fmt.Errorf("no answer within %s (cli.stdio.timeout); the call was cancelled", c.Timeout))
}

// serve runs a request, unless its context has ended. Tool calls need no goroutine, because
// callTool never waits. initialize has none, because its response must be the first.
func (s *Server) serve(ctx context.Context, c *Client, m rpc.Message, done rpc.Done) {
	switch {
	case ctx.Err() != nil:
		done(nil, nil, context.Cause(ctx))
	case m.Method == "tools/call" && !IsModern(m.Params):
		s.callTool(ctx, c, m, done)
	case m.Method == "initialize":
		s.runWithDone(ctx, c, m, done)
	default:
		go s.runWithDone(ctx, c, m, done)
	}
}

// runWithDone is run with a Done.
func (s *Server) runWithDone(ctx context.Context, c *Client, m rpc.Message, done rpc.Done) {
	result, err := s.run(ctx, c, m)
	done(result, nil, err)
}

// run finds the method of a request and runs it.
func (s *Server) run(ctx context.Context, c *Client, m rpc.Message) (_ []byte, err error) {
	defer s.recovered(m.Method, &err)
	if m.Method != "tools/call" { // readCall checks for duplicates itself
		if err := duplicateKey(rawjson.DuplicateKey(m.Params)...); err != nil {
			return nil, err
		}
	}
	if IsModern(m.Params) {
		return s.modern(ctx, c, m)
	}
	run, ok := Methods[m.Method]
	if !ok {
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "Method '%s' not found", m.Method)
	}
	params, err := checkParams(m.Params)
	if err != nil {
		return nil, err
	}
	m.Params = params
	return run(s, ctx, c, m)
}

// checkParams returns the params of a request, nil for null, which some clients send.
func checkParams(params []byte) ([]byte, error) {
	switch rawjson.Kind(params) {
	case 0:
	case '{':
		if bytes.Contains(params, []byte("_meta")) {
			if meta := rawjson.Get(params, "_meta"); !rawjson.IsNull(meta) && rawjson.Kind(meta) != '{' {
				return nil, invalidParams(`"_meta" must be an object`)
			}
		}
	case 'n':
		return nil, nil
	default:
		return nil, invalidParams(`"params" must be an object`)
	}
	return params, nil
}

// duplicateKey returns the error for params that contain a key twice, since two readers
// could use different values; nil for an empty path. The arguments of a tool are checked
// with its schema.
func duplicateKey(path ...string) error {
	if len(path) == 0 {
		return nil
	}
	return invalidParams(fmt.Sprintf("%q is given twice", strings.Join(path, ".")))
}

// safely runs a method. A panic affects only this request.
func (s *Server) safely(ctx context.Context, run Method, c *Client, m rpc.Message) (result []byte, err error) {
	defer s.recovered(m.Method, &err)
	return run(s, ctx, c, m)
}

// recovered, when deferred, turns a panic into an error.
func (s *Server) recovered(method string, err *error) {
	if p := recover(); p != nil {
		logging.Panic(s.Log.Error().Str("method", method), p).Msg("panic in request handler")
		*err = fmt.Errorf("internal error in %s", method)
	}
}

// notified handles a notification of the client.
func (s *Server) notified(c *Client, m rpc.Message) {
	switch m.Method {
	case "notifications/initialized":
		c.markReachable()
	case "notifications/roots/list_changed":
		s.registry.Broadcast(c, m.Method, m.Params)
	case "notifications/exit":
		c.Exited.Store(true)
	}
}

// ping handles ping.
func (s *Server) ping(context.Context, *Client, rpc.Message) ([]byte, error) {
	return []byte("{}"), nil
}

// WireError returns the JSON-RPC error that a client gets for an error.
func WireError(err error) *rpc.Error {
	if e, ok := errors.AsType[*rpc.Error](err); ok {
		return e
	}
	return &rpc.Error{Code: rpc.CodeInternal, Message: err.Error()}
}

// invalidParams returns the error for a request whose params are invalid.
func invalidParams(detail string) *rpc.Error {
	return &rpc.Error{
		Code:    rpc.CodeInvalidParams,
		Message: "Invalid params: " + detail,
		Data:    append(rawjson.AppendString([]byte(`{"detail":`), detail), '}'),
	}
}

// errorResult returns a tool result with an error that the model should see.
func errorResult(text string) []byte {
	b := rawjson.AppendString([]byte(`{"content":[{"type":"text","text":`), text)
	return append(b, `}],"isError":true}`...)
}

// startSpan starts the span of a request, and returns the context for handling it. The
// span is nil if spans are off, and for subscriptions/listen, which lasts as long as its
// client.
func (s *Server) startSpan(ctx context.Context, c *Client, m rpc.Message) (context.Context, *telemetry.Span) {
	if s.Tracer == nil || m.Method == "subscriptions/listen" {
		return ctx, nil
	}
	method := "_OTHER" // OpenTelemetry's word for a method that the server does not know
	if Methods[m.Method] != nil || modernMethods[m.Method] != nil {
		method = strings.Clone(m.Method)
	}
	meta := rawjson.Get(m.Params, "_meta")
	revision := c.Revision()
	if IsModern(m.Params) {
		revision, _ = rawjson.String(rawjson.Get(meta, mcp.MetaKeyProtocolVersion))
	}
	return s.Tracer.Receive(ctx, telemetry.Request{
		Method: method, Params: m.Params, Meta: meta, ID: m.ID, Revision: revision, Schema: s.profile.Name,
	})
}

// endSpan ends the span of a request.
func endSpan(span *telemetry.Span, isCancelled bool, result []byte, err error) {
	switch {
	case span == nil:
	case isCancelled:
		span.End(nil, "cancelled")
	case err != nil:
		span.End(nil, strconv.Itoa(WireError(err).Code))
	default:
		span.End(result, "")
	}
}
