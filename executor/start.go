package executor

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"mcpx/executor/results"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// startBytes is how long arguments may be that are looked at by whoever reads
// the client's messages: the next one waits for that.
const startBytes = 16 << 10

// Start makes the usual call: to an upstream that is ready, with arguments that
// are right at a glance. Nothing of it waits, so it needs no goroutine of its
// own: done is told what Do would return, by the goroutine that reads the
// upstream's messages, and must not wait either. ok is false for every other call,
// of which nothing was done: Do makes it.
func (e *Executor) Start(c Call, done registry.Done) (cancel func(cause error), ok bool) {
	begin := time.Now()
	u := e.registry.Catalog().Upstream(c.Server)
	if u == nil || c.Twice != "" || c.Beside != nil || len(c.Arguments) > startBytes || rawjson.Kind(c.Arguments) != '{' {
		return nil, false
	}
	tool := u.Tool(c.Tool)
	if tool == nil || !e.validators.of(tool).Accepts(c.Arguments) {
		return nil, false
	}
	c.Server, c.Tool = u.Name, tool.Name
	var cancelled atomic.Bool
	finish := func(result, line []byte, err error) {
		result, err = e.settleSafely(c, result, err)
		what := outcome(context.Background(), err)
		if cancelled.Load() && err != nil {
			what = "cancelled"
		}
		e.observe(c.event(begin, what, len(result)))
		done(result, line, err)
	}
	stop, ok := e.registry.Start(c.Server, e.request(c, tool.Name, c.Arguments), func(result, line []byte, err error) {
		if results.Fits(result, e.config.Limits.ResultTokens) {
			finish(result, line, err)
			return
		}
		go finish(result, line, err) // to cut it takes its time
	})
	return func(cause error) {
		cancelled.Store(true)
		stop(cause)
	}, ok
}

// settleSafely is settle where nobody else would catch a panic.
func (e *Executor) settleSafely(c Call, result []byte, err error) (_ []byte, failed error) {
	defer func() {
		if p := recover(); p != nil {
			e.log.Error().Str("server", c.Server).Str("tool", c.Tool).Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("panic in the handling of a result")
			failed = fmt.Errorf("internal error in the result of %s", c.Tool)
		}
	}()
	return e.settle(c, result, err)
}

// request is the call as the upstream gets it.
func (e *Executor) request(c Call, tool string, arguments []byte) registry.Request {
	return registry.Request{
		Method: "tools/call",
		Params: toolParams(tool, arguments),
		Meta:   rawjson.OrObject(c.Meta),
		Client: c.Client, Progress: c.Progress, Begun: c.begun,
	}
}
