// Package executor makes calls: it finds the tool, repairs common mistakes of models,
// checks the arguments against the tool's schema, sends the call to the upstream, and
// cuts a result that is too long. It also forwards other requests (Relay).
package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor/results"
	"mcpx/internal/logging"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/selection"
	"mcpx/internal/work"
	"mcpx/registry"
	"mcpx/registry/lists"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Executor makes calls to the upstreams of one profile.
type Executor struct {
	registry  *registry.Registry
	settings  atomic.Pointer[settings]
	log       zerolog.Logger
	observers Observers
	results   *results.Table
	builtin   builtin
	signIn    SignIn
	gates     []Gate
}

// settings are the values that a reload can change.
type settings struct {
	config  *config.Config
	profile *config.Profile
	problem string // why the newest config file is not in use; empty if it is
}

// Options are what an Executor needs besides its registry and config.
type Options struct {
	Log       zerolog.Logger
	Observers Observers
	SignIn    SignIn        // may be nil
	Gates     []Gate        // every request passes them
	Tools     []BuiltinTool // more tools of the built-in server; they are listed first

	Work *work.Budget // for work on large results; all profiles share it; nil: a new one
}

// New returns an Executor for calls to the registry's upstreams, which are those of
// the profile.
func New(r *registry.Registry, c *config.Config, p *config.Profile, o Options) *Executor {
	if o.Work == nil {
		o.Work = work.New(c.Limits.WorkBytes)
	}
	e := &Executor{
		registry:  r,
		log:       o.Log,
		observers: o.Observers,
		signIn:    o.SignIn,
		gates:     o.Gates,
		builtin:   newBuiltin(slices.Concat(o.Tools, coreTools())),
		results: results.New(results.Options{
			Tokens: c.Limits.ResultTokens, Head: c.Limits.ResultHead, Bytes: c.Limits.KeptBytes, Idle: c.Limits.SessionIdle,
			Work: o.Work,
		}),
	}
	e.settings.Store(&settings{config: c, profile: p})
	return e
}

// Apply sets the config and the profile for all calls that follow. It is called before
// the registry's Apply.
func (e *Executor) Apply(c *config.Config, p *config.Profile) {
	e.settings.Store(&settings{config: c, profile: p})
}

// SetProblem sets why the newest config file is not in use. The tool servers shows it
// until the next Apply.
func (e *Executor) SetProblem(problem string) {
	s := *e.settings.Load()
	s.problem = problem
	e.settings.Store(&s)
}

// InspectTokens is the longest listing, in tokens.
func (e *Executor) InspectTokens() int { return e.settings.Load().config.Limits.InspectTokens }

// Call is one tool call: made with exec, which names server and tool, or of a tool that
// flat mode lists.
type Call struct {
	Request   string          // the client's ID of the request, for the log
	Client    upstream.Client // the caller; nil for a program
	Server    string
	Tool      string
	Arguments []byte              // as the client sent them, of any type; nil if absent
	Select    []byte              // the fields and rows to return, as the client sent it; nil for all
	Meta      []byte              // the client's _meta, or nil
	Progress  func(params []byte) // gets progress; must not wait; may be nil

	// Set by ParseExec.
	DuplicateKey string // a key that occurs twice, which is an error
	Siblings     []byte // exec's arguments object, if it has unknown members, which may be arguments of the tool

	// Flat mode.
	FlatName []byte // the tool's name on the front, as the client sent it; nil for exec
	Params   []byte // the client's params, whose unknown members are passed on

	begun     time.Time
	isFlat    bool
	mayWait   bool             // it has a goroutine of its own
	tool      *lists.Tool      // set by prepare, with what follows
	arguments []byte           // to send
	selection *selection.Query // Select
	notes     []string         // about the arguments; the result ends with them
	passed    int              // how many gates have let it pass
	isOver    bool             // its result or error is known
	hasAsked  bool             // the client was asked to sign in
}

// Call is Go for callers that wait.
func (e *Executor) Call(ctx context.Context, c Call) ([]byte, error) {
	result, err := rpc.Wait(func(done rpc.Done) { e.Go(ctx, c, done) })
	return result.Take(), err
}

// Go makes a call and never waits. done gets the upstream's result, unchanged unless it
// had to be cut, or an error whose text says what to do. Nearly every call is sent by the
// goroutine of the caller (BenchmarkStdioSmall), and finished by the one that reads the
// upstream's messages. A call that must wait begins again in a goroutine of its own.
func (e *Executor) Go(ctx context.Context, c Call, done rpc.Done) {
	c.begun = time.Now()
	c.isFlat = c.FlatName != nil
	defer e.recoverCall(ctx, &c, done)
	if e.run(ctx, &c, done) {
		return
	}
	c.mayWait = true
	go func() {
		defer e.recoverCall(ctx, &c, done)
		e.run(ctx, &c, done)
	}()
}

// recoverCall, when deferred, ends a call that panicked. A panic affects only that call.
func (e *Executor) recoverCall(ctx context.Context, c *Call, done rpc.Done) {
	p := recover()
	if p == nil {
		return
	}
	logging.Panic(e.log.Error().Str("server", c.Server).Str("tool", c.Tool), p).Msg("panic in call")
	if !c.isOver {
		e.finish(ctx, c, end{err: fmt.Errorf("internal error in a call of %s", c.Tool)}, done)
	}
}

// run makes a call: prepare, gates, send. It returns false, and has sent nothing, if the call
// must wait but may not.
func (e *Executor) run(ctx context.Context, c *Call, done rpc.Done) bool {
	err := e.admit(ctx, c)
	switch {
	case !c.mayWait && errors.Is(err, ErrMustWait):
		return false
	case err != nil:
		e.finish(ctx, c, end{err: err}, done)
	case c.Server == Builtin:
		result, err := e.callBuiltin(ctx, *c, c.arguments)
		e.finish(ctx, c, end{rpc.NewResult(result), err}, done)
	default:
		e.send(ctx, c, done)
	}
	return true
}

// admit prepares a call, and asks the gates about it. What it has done is not done again.
func (e *Executor) admit(ctx context.Context, c *Call) (err error) {
	if c.tool == nil {
		if err := e.prepare(ctx, c); err != nil {
			return err
		}
	}
	if len(e.gates) > 0 {
		a := &Attempt{Client: c.Client, Server: c.Server, Method: "tools/call", Name: c.Tool, Tool: c.tool, Arguments: c.arguments}
		if c.passed, err = e.pass(ctx, a, c.passed, c.mayWait); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// send sends a call to its upstream, and finishes it when it ends. If the upstream has
// refused it until a person signs in, it is sent again after that.
func (e *Executor) send(ctx context.Context, c *Call, done rpc.Done) {
	e.registry.Go(ctx, c.Server, c.request(), func(result rpc.Result, err error) {
		switch {
		case err != nil && !c.hasAsked && needsSignIn(err):
			go func() {
				defer e.recoverCall(ctx, c, done)
				if e.askToSignIn(ctx, c, err) {
					e.send(ctx, c, done)
					return
				}
				e.finish(ctx, c, end{err: err}, done)
			}()
		case c.isFlat || c.selection == nil && e.results.IsSmall(result.JSON):
			e.finish(ctx, c, end{result, err}, done)
		default:
			go e.finish(ctx, c, end{result, err}, done) // reading a long result takes time
		}
	})
}

// end is the end of a call, as rpc.Done gets it.
type end struct {
	result rpc.Result
	err    error
}

// prepare finds the tool and sets the arguments to send, repaired and checked. It returns
// ErrMustWait instead of waiting or working long if the call may not wait.
func (e *Executor) prepare(ctx context.Context, c *Call) error {
	if c.DuplicateKey != "" {
		return &badCall{fmt.Sprintf("%q is given twice", c.DuplicateKey)}
	}
	u, t, err := e.findTool(ctx, c)
	if err != nil && e.askToSignIn(ctx, c, err) {
		u, t, err = e.findTool(ctx, c)
	}
	if err != nil {
		return err
	}
	c.setNames(u, t)
	if err := c.readSelect(t); err != nil {
		return err
	}
	if c.selection, err = e.bind(ctx, c, c.selection); err != nil {
		return err
	}
	if c.arguments, err = e.arguments(ctx, c, u, t); err != nil {
		return err
	}
	c.tool = t
	return nil
}

// setNames sets the names as the catalog has them: the client's strings would keep the
// request in memory.
func (c *Call) setNames(u *live.Upstream, t *lists.Tool) { c.Server, c.Tool = u.Name, t.Name }

// finish makes the result that the client gets, and reports the event. A new policy that
// changes results belongs here.
func (e *Executor) finish(ctx context.Context, c *Call, end end, done rpc.Done) {
	defer e.recoverCall(ctx, c, done)
	defer end.result.Free()
	result, err := e.clientResult(ctx, c, end)
	c.isOver = true
	defer done(end.result.With(result), err)                            // also after a panic
	e.observe(c.event(outcome(ctx, cmp.Or(end.err, err)), len(result))) // end.err first, since clientResult may hide its kind
}

// clientResult turns the end of a call into the client's result or error. In flat mode
// results stay whole, and errors are MCP errors.
func (e *Executor) clientResult(ctx context.Context, c *Call, end end) (result []byte, err error) {
	switch {
	case c.isFlat:
		return end.result.JSON, flatError(c.Server, end.err)
	case end.err != nil:
		if own, ok := errors.AsType[*rpc.Error](end.err); ok {
			return nil, &UpstreamError{Server: c.Server, Err: own, notes: c.notes}
		}
		return nil, end.err
	case isUnfinished(c):
		return end.result.JSON, nil
	}
	if result, err = e.fit(ctx, c, end.result.JSON); err != nil {
		return nil, err
	}
	if len(c.notes) > 0 {
		result = results.AppendText(result, strings.Join(c.notes, "\n"))
	}
	return result, nil
}

// isUnfinished reports whether the result of a call is a request for input.
func isUnfinished(c *Call) bool {
	client, ok := c.Client.(upstream.RoundClient)
	return ok && client.HasPassed()
}

// fit returns a result of exec for the client: the selected part, or the whole result unless
// it is too long. It waits until there is room for the work, unless the result is small.
func (e *Executor) fit(ctx context.Context, c *Call, raw []byte) ([]byte, error) {
	isBuiltin := c.Server == Builtin
	if isBuiltin && (c.Tool == readResultName || c.selection == nil && e.results.IsSmall(raw)) {
		return raw, nil // it has been cut already, or is short
	}
	client, tool := ownerOf(c.Client), results.Tool{Server: c.Server, Name: c.Tool}
	if !isBuiltin && c.selection == nil && e.results.RememberShort(client, tool, raw) {
		return raw, nil
	}
	result, err := e.results.Open(ctx, client, raw, c.selection)
	if err != nil {
		return nil, err
	}
	defer result.Close()
	if isBuiltin && c.selection == nil {
		return result.Cut()
	}
	if err := result.Remember(tool); err != nil {
		return nil, err
	}
	return result.Fit()
}

// event returns the Event of the call.
func (c *Call) event(outcome string, size int) Event {
	return Event{
		Client: ownerOf(c.Client), Request: c.Request, Server: c.Server, Tool: c.Tool, Outcome: outcome,
		Took: time.Since(c.begun), BytesIn: len(c.Arguments), BytesOut: size, Arguments: c.Arguments, Caller: upstream.CallerOf(c.Client).Name,
		Program: upstream.ProgramOf(c.Client),
	}
}

// request returns the request to the upstream.
func (c *Call) request() upstream.Request {
	r := upstream.Request{
		Method: "tools/call",
		Meta:   rawjson.OrObject(c.Meta),
		Client: c.Client, Progress: c.Progress, Begun: c.begun,
	}
	if c.isFlat {
		params := rawjson.With(rawjson.With(c.Params, "_meta", nil), "name", rawjson.AppendString(nil, c.Tool))
		r.Params = rawjson.With(params, "arguments", c.arguments)
	} else {
		r.Params = toolParams(c.Tool, c.arguments)
	}
	return r
}

// Forget drops the kept results of a client that is gone. Other replicas can still read
// those that are shared.
func (e *Executor) Forget(client string) { e.results.Forget(client) }

// Remove drops the kept results of a client that is gone everywhere.
func (e *Executor) Remove(client string) { e.results.Remove(client) }

// Share puts the results that are kept from now on onto a shelf, too. It is called before the
// first call.
func (e *Executor) Share(s results.Shelf) { e.results.Shelf = s }

func toolParams(name string, arguments []byte) []byte {
	b := make([]byte, 0, len(`{"name":"","arguments":}`)+len(name)+len(arguments))
	b = rawjson.AppendString(append(b, `{"name":`...), name)
	b = append(append(b, `,"arguments":`...), arguments...)
	return append(b, '}')
}
