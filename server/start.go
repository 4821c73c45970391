package server

import (
	"errors"

	"mcpx/executor"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// start begins a call of exec that waits for nothing before it is sent: nearly
// every one, and all that has to be fast. reply is given the answer when it is
// there, nil for a call that the client has cancelled; it must not wait. Where
// start returns false nothing was done.
func (s *Server) start(c *Client, m jsonrpc.Message, reply func(answer []byte)) (started bool) {
	defer func() {
		if p := recover(); p != nil { // it costs the one call, as in safely
			s.panicked(m.Method, p)
			reply(jsonrpc.AppendError(nil, m.ID, wireError(internalError(m.Method))))
			started = true
		}
	}()
	if !s.lazy || m.Method != "tools/call" || isModern(m.Params) {
		return false
	}
	p, err := readCall(m.Params)
	if name, _ := rawjson.View(p.name); err != nil || name != "exec" || p.meta != nil && rawjson.Kind(p.meta) != '{' {
		return false
	}
	call := executor.ParseExec(p.arguments)
	call.Request, call.Client, call.Meta, call.Progress = string(m.ID), c, p.meta, c.progress(p.meta)
	held := new(inFlight)
	c.hold(call.Request, held)
	stop, ok := s.executor.Start(call, func(result, line []byte, err error) {
		c.release(call.Request, held)
		if errors.Is(err, errCancelled) {
			reply(nil)
			return
		}
		if err != nil {
			result = errorResult(err.Error())
		}
		reply(jsonrpc.AnswerIn(line, m.ID, result))
	})
	if !ok {
		c.release(call.Request, held)
		return false
	}
	c.mu.Lock()
	held.cancel = stop
	cause := held.cause
	c.mu.Unlock()
	if cause != nil {
		stop(cause)
	}
	return true
}
