// Package executor takes one call from a name to an answer: it finds the tool,
// repairs common mistakes of models, checks the arguments against the tool's cached
// schema, sends the call over the upstream's session, and cuts a result that is too
// long.
package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor/results"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// Executor makes calls to the upstreams of one profile.
type Executor struct {
	registry *registry.Registry
	config   *config.Config
	profile  *config.Profile
	log      zerolog.Logger
	observe  func(Event)
	listings listings
	results  *results.Store
	exposure atomic.Pointer[Exposure]
	builtin  builtin
}

// Options are what an Executor needs besides its registry and config.
type Options struct {
	Log     zerolog.Logger
	Observe func(Event) // gets the event of every call; may be nil
}

// New returns an Executor for calls to the registry's upstreams, which are those of
// the profile.
func New(r *registry.Registry, c *config.Config, p *config.Profile, o Options) *Executor {
	e := &Executor{
		registry: r,
		config:   c,
		profile:  p,
		log:      o.Log,
		results:  results.New(c.Limits.ResultTokens),
	}
	e.observe = func(event Event) {
		if o.Observe != nil {
			event.Schema = p.Name
			o.Observe(event)
		}
	}
	e.builtin = newBuiltin(e)
	return e
}

// Call is one tool call: of exec, which names server and tool, or of a tool that
// flat mode lists.
type Call struct {
	Request   string          // the client's ID of the request, for the log
	Client    registry.Client // who calls; nil for a program
	Server    string
	Tool      string
	Arguments []byte              // as the client sent them, of any type; nil if absent
	Meta      []byte              // the client's _meta, or nil
	Progress  func(params []byte) // gets progress; must not wait; may be nil

	// What ParseExec finds besides these.
	DuplicateKey string // a key that was given twice: such a call is refused
	Siblings     []byte // the object that held the arguments, if it has unknown members, which may be arguments

	// Flat mode.
	FlatName []byte // the tool's name on the front, as the client sent it; nil for exec
	Params   []byte // the client's params, whose unknown members are passed on

	begun      time.Time
	isFlat     bool
	isAccepted bool // the arguments are known to fit the schema
	isOver     bool // its end was reported
}

// Event is what became of a call.
type Event struct {
	Schema, Client, Request, Server, Tool string
	Outcome                               string // ok, or the kind of failure
	Took                                  time.Duration
	BytesIn, BytesOut                     int
}

// Do is Go for callers that wait.
func (e *Executor) Do(ctx context.Context, c Call) (result []byte, err error) {
	return jsonrpc.Wait(func(done jsonrpc.Done) { e.Go(ctx, c, done) })
}

// Go makes a call. done gets the end once: the upstream's result as it came, unless
// it had to be cut, or an error whose text says what to do. Go never waits. A call
// that might has a goroutine of its own; all others run prepare in the caller's
// goroutine, and finish in the one that reads the upstream's messages.
func (e *Executor) Go(ctx context.Context, c Call, done jsonrpc.Done) {
	c.begun = time.Now()
	c.isFlat = c.FlatName != nil
	defer e.recoverCall(ctx, &c, done)
	if e.isQuick(&c) {
		e.run(ctx, &c, done)
		return
	}
	go func() {
		defer e.recoverCall(ctx, &c, done)
		e.run(ctx, &c, done)
	}()
}

// recoverCall, when deferred, ends a call that panicked: a panic costs only the call.
func (e *Executor) recoverCall(ctx context.Context, c *Call, done jsonrpc.Done) {
	p := recover()
	if p == nil {
		return
	}
	e.logPanic(c, p)
	if !c.isOver {
		e.finish(ctx, c, end{err: internalError(c)}, done)
	}
}

func (e *Executor) logPanic(c *Call, p any) {
	e.log.Error().Str("server", c.Server).Str("tool", c.Tool).Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("panic in a call")
}

func internalError(c *Call) error { return fmt.Errorf("internal error in a call of %s", c.Tool) }

// quickBytes bounds the arguments that are checked by the goroutine that reads the
// client's messages: the next message waits for that.
const quickBytes = 16 << 10

// isQuick reports whether nothing about a call has to wait: its server is ready, the
// names are exact, and the arguments fit the schema at a glance. That is nearly every
// call (BenchmarkExec).
func (e *Executor) isQuick(c *Call) bool {
	if c.isFlat && !e.resolveQuickly(c) {
		return false
	}
	u := e.registry.Catalog().Upstream(c.Server)
	if u == nil || u.State != registry.Ready || c.DuplicateKey != "" || c.Siblings != nil || len(c.Arguments) > quickBytes || rawjson.Kind(c.Arguments) != '{' {
		return false
	}
	t := u.Tool(c.Tool)
	c.isAccepted = t != nil && validatorOf(t).Accepts(c.Arguments)
	return c.isAccepted
}

// run takes a call from its names to its end.
func (e *Executor) run(ctx context.Context, c *Call, done jsonrpc.Done) {
	arguments, err := e.prepare(ctx, c)
	switch {
	case err != nil:
		e.finish(ctx, c, end{err: err}, done)
	case c.Server == Builtin:
		result, err := e.callBuiltin(ctx, *c, arguments)
		e.finish(ctx, c, end{result: result, err: err}, done)
	default:
		e.registry.Send(ctx, c.Server, c.request(arguments), func(result, line []byte, err error) {
			if c.isFlat || results.Fits(result, e.config.Limits.ResultTokens) {
				e.finish(ctx, c, end{result, line, err}, done)
				return
			}
			go e.finish(ctx, c, end{result, line, err}, done) // cutting takes time
		})
	}
}

// end is the end of a call, as jsonrpc.Done gets it.
type end struct {
	result, line []byte
	err          error
}

// prepare finds the tool and returns the arguments to send, repaired and checked. It
// may wait. Whatever decides whether a call may be made is a line here.
func (e *Executor) prepare(ctx context.Context, c *Call) (arguments []byte, err error) {
	if c.DuplicateKey != "" {
		return nil, &duplicateKey{c.DuplicateKey}
	}
	u, t, err := e.find(ctx, c)
	if err != nil {
		return nil, err
	}
	c.Server, c.Tool = u.Name, t.Name // the call then keeps nothing of the client's message
	if arguments = c.Arguments; !c.isAccepted {
		if arguments, err = e.arguments(*c, u, t); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return arguments, nil
}

// finish makes the answer that the client gets, and reports the event. Whatever
// happens to every result is a line here.
func (e *Executor) finish(ctx context.Context, c *Call, end end, done jsonrpc.Done) {
	result, err := e.settle(c, end)
	e.observe(c.event(outcome(ctx, cmp.Or(end.err, err)), len(result))) // settle may hide what kind of error it was
	c.isOver = true
	done(result, end.line, err)
}

// settle turns an upstream's answer into the client's. Flat mode passes results on
// whole, and errors as MCP errors.
func (e *Executor) settle(c *Call, end end) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil { // nobody else would end the call
			e.logPanic(c, p)
			err = internalError(c)
		}
	}()
	switch {
	case c.isFlat:
		return end.result, flatError(c.Server, end.err)
	case end.err != nil:
		return nil, execError(c.Server, end.err)
	}
	return e.results.Fit(ownerOf(c.Client), end.result, e.config.Limits.ResultTokens), nil
}

// execError returns the error of a call as exec's caller gets it.
func execError(server string, err error) error {
	var own *jsonrpc.Error
	if errors.As(err, &own) {
		return &Refused{Server: server, Own: own}
	}
	return err
}

// event returns what became of the call.
func (c *Call) event(outcome string, size int) Event {
	return Event{
		Client: ownerOf(c.Client), Request: c.Request, Server: c.Server, Tool: c.Tool, Outcome: outcome,
		Took: time.Since(c.begun), BytesIn: len(c.Arguments), BytesOut: size,
	}
}

// request returns the call as the upstream gets it.
func (c *Call) request(arguments []byte) registry.Request {
	r := registry.Request{
		Method: "tools/call",
		Meta:   rawjson.OrObject(c.Meta),
		Client: c.Client, Progress: c.Progress, Begun: c.begun,
	}
	if c.isFlat {
		params := rawjson.With(rawjson.With(c.Params, "_meta", nil), "name", rawjson.AppendString(nil, c.Tool))
		r.Params = rawjson.With(params, "arguments", arguments)
	} else {
		r.Params = toolParams(c.Tool, arguments)
	}
	return r
}

// Forget drops the results kept for a client that is gone.
func (e *Executor) Forget(client string) { e.results.Forget(client) }

func toolParams(name string, arguments []byte) []byte {
	b := make([]byte, 0, len(`{"name":"","arguments":}`)+len(name)+len(arguments))
	b = rawjson.AppendString(append(b, `{"name":`...), name)
	b = append(append(b, `,"arguments":`...), arguments...)
	return append(b, '}')
}
