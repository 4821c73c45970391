// Package executor makes calls: it finds the tool, repairs common mistakes of models,
// checks the arguments against the tool's schema, sends the call to the upstream, and
// cuts a result that is too long. It also forwards other requests (Relay).
package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"mcpx/internal/store"
	"mcpx/internal/upstream"
	"mcpx/internal/work"
	"mcpx/registry"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// Executor makes calls to the upstreams of one profile.
type Executor struct {
	registry *registry.Registry
	settings atomic.Pointer[settings]
	log      zerolog.Logger
	observe  func(Event)
	results  *results.Store
	builtin  builtin
	signIn   SignIn
}

// settings are the values that a reload can change.
type settings struct {
	config  *config.Config
	profile *config.Profile
	problem string // why the newest config file is not in use; empty if it is
}

// Options are what an Executor needs besides its registry and config.
type Options struct {
	Log     zerolog.Logger
	Observe func(Event) // gets the event of every call; may be nil
	SignIn  SignIn      // may be nil

	Work *work.Budget // for work on large results; all profiles share it; nil: a new one
}

// SignIn returns the address where the person who uses a client signs in to a server, with
// these scopes in addition to those that the server asks for.
type SignIn func(ctx context.Context, c upstream.Client, server string, scopes []string) (address string, err error)

// New returns an Executor for calls to the registry's upstreams, which are those of
// the profile.
func New(r *registry.Registry, c *config.Config, p *config.Profile, o Options) *Executor {
	if o.Work == nil {
		o.Work = work.New(c.Limits.WorkBytes)
	}
	e := &Executor{
		registry: r,
		log:      o.Log,
		signIn:   o.SignIn,
		results: results.New(results.Options{
			Tokens: c.Limits.ResultTokens, Head: c.Limits.ResultHead, Bytes: c.Limits.KeptBytes, Idle: c.Limits.SessionIdle,
			Work: o.Work,
		}),
	}
	e.settings.Store(&settings{config: c, profile: p})
	e.observe = func(event Event) {
		if o.Observe != nil {
			event.Schema = p.Name
			o.Observe(event)
		}
	}
	e.builtin = newBuiltin(e)
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

// inspectTokens is the longest listing, in tokens.
func (e *Executor) inspectTokens() int { return e.settings.Load().config.Limits.InspectTokens }

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

	begun      time.Time
	isFlat     bool
	isAccepted bool             // isQuick has found the tool, and its schema accepts the arguments
	selection  *selection.Query // Select, once prepare has read it
	notes      []string         // about the arguments; the result ends with them
	isOver     bool             // its result or error is known
	hasAsked   bool             // the client was asked to sign in
}

// Event reports the end of a call, or of another request to an upstream.
type Event struct {
	Schema, Client, Request, Server, Tool string

	Caller            string // the name of the caller; empty for one without a name
	Program           upstream.Program
	Method            string // of a request that is not a call; empty for a call
	Arguments         []byte // as the client sent them; valid until the observer returns
	Outcome           string // "ok" or the kind of failure
	Took              time.Duration
	BytesIn, BytesOut int
}

// Do is Go for callers that wait.
func (e *Executor) Do(ctx context.Context, c Call) (result []byte, err error) {
	return rpc.Wait(func(done rpc.Done) { e.Go(ctx, c, done) })
}

// Go makes a call and never waits. done gets the upstream's result, unchanged unless it
// had to be cut, or an error whose text says what to do. A call that may have to wait
// gets its own goroutine. Any other call runs prepare in the caller's goroutine, and
// finish in the goroutine that reads the upstream's messages.
func (e *Executor) Go(ctx context.Context, c Call, done rpc.Done) {
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

// quickBytes bounds the arguments that are checked in the goroutine that reads the
// client's messages, since that delays the next message.
const quickBytes = 16 << 10

// isQuick reports whether a call need not wait: its server is ready, the names are exact,
// and the quick check accepts the arguments. That holds for nearly every call
// (BenchmarkStdioSmall).
func (e *Executor) isQuick(c *Call) bool {
	if c.isFlat && !e.resolve(c) {
		return false
	}
	seen := e.registry.For(c.Client)
	u := seen.Catalog().Upstream(c.Server)
	if u == nil || u.State != live.Ready || seen.AwaitsLists(u) || c.DuplicateKey != "" || c.Siblings != nil || c.Select != nil ||
		len(c.Arguments) > quickBytes || rawjson.Kind(c.Arguments) != '{' || !c.isFlat && mayHaveReference(c.Arguments) {
		return false
	}
	t := u.Tool(c.Tool)
	if t == nil || !validatorOf(t).Accepts(c.Arguments) {
		return false
	}
	c.isAccepted = true
	c.setNames(u, t)
	return true
}

// setNames sets the names as the catalog has them: the client's strings would keep the
// request in memory.
func (c *Call) setNames(u *live.Upstream, t *lists.Tool) { c.Server, c.Tool = u.Name, t.Name }

// run runs a call: prepare, send, finish.
func (e *Executor) run(ctx context.Context, c *Call, done rpc.Done) {
	arguments, err := e.prepare(ctx, c)
	switch {
	case err != nil:
		e.finish(ctx, c, end{err: err}, done)
	case c.Server == Builtin:
		result, err := e.callBuiltin(ctx, *c, arguments)
		e.finish(ctx, c, end{result: result, err: err}, done)
	default:
		e.send(ctx, c, arguments, done)
	}
}

// send sends a call to its upstream, and finishes it when it ends. If the upstream has
// refused it until a person signs in, it is sent again after that.
func (e *Executor) send(ctx context.Context, c *Call, arguments []byte, done rpc.Done) {
	e.registry.Send(ctx, c.Server, c.request(arguments), func(result, line []byte, err error) {
		switch {
		case err != nil && !c.hasAsked && needsSignIn(err):
			go func() {
				defer e.recoverCall(ctx, c, done)
				if e.askToSignIn(ctx, c, err) {
					e.send(ctx, c, arguments, done)
					return
				}
				e.finish(ctx, c, end{err: err}, done)
			}()
		case c.isFlat || c.selection == nil && e.results.IsSmall(result):
			e.finish(ctx, c, end{result, line, err}, done)
		default:
			go e.finish(ctx, c, end{result, line, err}, done) // reading a long result takes time
		}
	})
}

// end is the end of a call, as rpc.Done gets it.
type end struct {
	result, line []byte
	err          error
}

// prepare finds the tool and returns the arguments to send, repaired and checked. It may
// wait. A new policy that can refuse a call belongs here.
func (e *Executor) prepare(ctx context.Context, c *Call) (arguments []byte, err error) {
	if c.DuplicateKey != "" {
		return nil, &badCall{fmt.Sprintf("%q is given twice", c.DuplicateKey)}
	}
	if arguments = c.Arguments; !c.isAccepted {
		u, t, err := e.find(ctx, c)
		if err != nil && e.askToSignIn(ctx, c, err) {
			u, t, err = e.find(ctx, c)
		}
		if err != nil {
			return nil, err
		}
		c.setNames(u, t)
		if err := c.readSelect(t); err != nil {
			return nil, err
		}
		if arguments, err = e.arguments(ctx, c, u, t); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return arguments, nil
}

// finish makes the result that the client gets, and reports the event. A new policy that
// changes results belongs here.
func (e *Executor) finish(ctx context.Context, c *Call, end end, done rpc.Done) {
	defer e.recoverCall(ctx, c, done)
	result, err := e.clientResult(ctx, c, end)
	c.isOver = true
	defer done(result, end.line, err)                                   // also if an observer panics
	e.observe(c.event(outcome(ctx, cmp.Or(end.err, err)), len(result))) // end.err first, since clientResult may hide its kind
}

// clientResult turns the end of a call into the client's result or error. In flat mode
// results stay whole, and errors are MCP errors.
func (e *Executor) clientResult(ctx context.Context, c *Call, end end) (result []byte, err error) {
	switch {
	case c.isFlat:
		return end.result, flatError(c.Server, end.err)
	case end.err != nil:
		if own, ok := errors.AsType[*rpc.Error](end.err); ok {
			return nil, &UpstreamError{Server: c.Server, Err: own, notes: c.notes}
		}
		return nil, end.err
	case isUnfinished(c):
		return end.result, nil
	}
	if result, err = e.fit(ctx, c, end.result); err != nil {
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
func (c *Call) request(arguments []byte) upstream.Request {
	r := upstream.Request{
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

// Forget drops the kept results of a client that is gone. Other replicas can still read
// those that are shared.
func (e *Executor) Forget(client string) { e.results.Forget(client) }

// Remove drops the kept results of a client that is gone everywhere.
func (e *Executor) Remove(client string) { e.results.Remove(client) }

// Share lets other replicas read the results that are kept from now on. It is called
// before the first call.
func (e *Executor) Share(s store.Store) {
	e.results.Sharing = results.Sharing{Store: s, Space: e.settings.Load().profile.Name}
}

// Close waits for changes of results in the shared store.
func (e *Executor) Close() { e.results.Close() }

func toolParams(name string, arguments []byte) []byte {
	b := make([]byte, 0, len(`{"name":"","arguments":}`)+len(name)+len(arguments))
	b = rawjson.AppendString(append(b, `{"name":`...), name)
	b = append(append(b, `,"arguments":`...), arguments...)
	return append(b, '}')
}
