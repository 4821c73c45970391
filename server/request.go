package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mcpx/internal/logging"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// begin handles a notification or a response and returns nil. It registers a request, so
// that the client can cancel it, and returns its context and the function that starts it.
func (s *Server) begin(ctx context.Context, c *Client, m rpc.Message) (request context.Context, start func(respond func(response []byte))) {
	if c.Conn.Receive(m, rpc.Line{}) {
		return nil, nil
	}
	if m.IsNotification() {
		s.notified(c, m)
		return nil, nil
	}
	c.markReachable()
	s.Log.Debug().Str("client", c.id).Bytes("request", m.ID).Str("method", m.Method).Msg("request")
	ctx, span := s.startSpan(ctx, c, m)
	in, unlink := c.begin(ctx, m.ID)
	return in, func(respond func(response []byte)) {
		stopTimer := c.limit(in)
		s.serve(in, c, m, func(result rpc.Result, err error) {
			isCanceled := in.IsCanceledBy(ErrCanceled)
			in.End()
			unlink()
			stopTimer()
			endSpan(span, isCanceled, result.JSON, err)
			if m.Method == "tools/list" && s.Listed != nil {
				s.Listed()
			}
			switch {
			case isCanceled:
				respond(nil)
			case err != nil:
				respond(rpc.AppendError(nil, m.ID, WireError(err)))
			default:
				respond(result.Response(m.ID))
			}
		})
	}
}

// begin registers a request of the client. It is canceled when ctx ends, until unlink is called.
// It does not inherit that from ctx, because a call of 2026-07-28 may outlast its request.
func (c *Client) begin(ctx context.Context, id []byte) (_ *rpc.Incoming, unlink func() bool) {
	parent := ctx
	if ctx.Done() != nil {
		parent = context.WithoutCancel(ctx)
	}
	in, _ := c.Conn.Begin(parent, id, 0)
	if ctx.Done() == nil {
		return in, func() bool { return true }
	}
	return in, context.AfterFunc(ctx, func() { in.Cancel(context.Cause(ctx)) })
}

// limit cancels a request after the time limit of the client.
func (c *Client) limit(in *rpc.Incoming) (stop func() bool) {
	if c.Timeout == 0 {
		return func() bool { return true }
	}
	late := fmt.Errorf("no answer within %s (cli.stdio.timeout); the call was canceled", c.Timeout)
	return time.AfterFunc(c.Timeout, func() { in.Cancel(late) }).Stop
}

// serve runs a request, unless its context has ended. Tool calls need no goroutine, because
// callTool never waits. initialize has none, because its response must be the first.
func (s *Server) serve(in *rpc.Incoming, c *Client, m rpc.Message, done rpc.Done) {
	switch {
	case in.Err() != nil:
		done(rpc.Result{}, context.Cause(in))
	case m.Method == "tools/call":
		s.callTool(in, c, m, done)
	case m.Method == "initialize":
		s.runWithDone(in, c, m, done)
	default:
		go s.runWithDone(in, c, m, done)
	}
}

// runWithDone is run with a Done.
func (s *Server) runWithDone(in *rpc.Incoming, c *Client, m rpc.Message, done rpc.Done) {
	result, err := s.run(in, c, m)
	done(rpc.NewResult(result), err)
}

// run finds the method of a request and runs it.
func (s *Server) run(in *rpc.Incoming, c *Client, m rpc.Message) (_ []byte, err error) {
	defer s.recovered(m.Method, &err)
	if err := duplicateKey(rawjson.DuplicateKey(m.Params)...); err != nil {
		return nil, err
	}
	if Is2026(m.Params) {
		return s.call2026(in, c, m)
	}
	method, ok := Methods[m.Method]
	if !ok || method.IsNew {
		return nil, methodNotFound(m.Method)
	}
	params, err := checkParams(m.Params)
	if err != nil {
		return nil, err
	}
	m.Params = params
	return method.Run(s, in, c, m)
}

// checkParams returns the params of a request, nil for null, which some clients send.
func checkParams(params []byte) ([]byte, error) {
	switch rawjson.Kind(params) {
	case 0:
		return nil, nil
	case '{':
		return params, checkMeta(rawjson.Get(params, "_meta"))
	case 'n':
		return nil, nil
	}
	return nil, invalidParams(`"params" must be an object`)
}

// checkMeta returns an error for a _meta that is not an object.
func checkMeta(meta []byte) error {
	if rawjson.IsNull(meta) || rawjson.Kind(meta) == '{' {
		return nil
	}
	return invalidParams(`"_meta" must be an object`)
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
