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
	key, held := string(m.ID), new(inFlight)
	defer func() {
		if p := recover(); p != nil { // it costs the one call, as in safely
			s.panicked(m.Method, p)
			c.release(key, held)
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
	call.Request, call.Client, call.Meta, call.Progress = key, c, p.meta, c.progress(p.meta)
	c.hold(key, held)
	stop, ok := s.executor.Start(call, func(result, line []byte, err error) {
		c.release(key, held)
		reply(s.execAnswer(m, result, line, err))
	})
	if !ok {
		c.release(key, held)
		if c.begun(held, nil) != nil { // cancelled meanwhile
			reply(nil)
			return true
		}
		return false
	}
	s.logRequest(c, m)
	if cause := c.begun(held, stop); cause != nil {
		stop(cause)
	}
	return true
}

// execAnswer is the answer to a call of exec; nil if the client has cancelled it. It
// runs where a panic would end the process.
func (s *Server) execAnswer(m jsonrpc.Message, result, line []byte, err error) (answer []byte) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(m.Method, p)
			answer = jsonrpc.AppendError(nil, m.ID, wireError(internalError(m.Method)))
		}
	}()
	if errors.Is(err, errCancelled) {
		return nil
	}
	if err != nil {
		result = errorResult(err.Error())
	}
	return jsonrpc.AnswerIn(line, m.ID, result)
}
