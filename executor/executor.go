// Package executor takes one call from a name to an answer: it finds the tool,
// repairs what models are known to get wrong, checks the arguments against the
// tool's cached schema, sends the call over the upstream's session, and fits
// the result to the client's budget.
package executor

import (
	"context"
	"errors"
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
	registry   *registry.Registry
	config     *config.Config
	profile    *config.Profile
	log        zerolog.Logger
	observe    func(Event)
	validators validators
	listings   listings
	results    *results.Store
	exposure   atomic.Pointer[Exposure]
	builtin    builtin
}

// Options are what an Executor needs besides its registry and config.
type Options struct {
	Log     zerolog.Logger
	Observe func(Event) // sees every call once it is over; may be nil
}

// New returns an Executor of calls to the registry's upstreams, which are those
// of the profile.
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

// Call is one tool call.
type Call struct {
	Request   string          // the client's id of the call, for the log
	Client    registry.Client // who calls: result handles are a client's own; nil for a program
	Server    string
	Tool      string
	Arguments []byte              // as the client sent them, whatever they are; nil if absent
	Twice     string              // a key of the object that held them, if it gave one twice: such a call is not made
	Beside    []byte              // the object that held them, for arguments that stand beside them; may be nil
	Meta      []byte              // the client's _meta, or nil
	Progress  func(params []byte) // as registry.Request has it

	begun time.Time // when the call came in
}

// Event is what became of a call.
type Event struct {
	Schema, Client, Request, Server, Tool string
	Outcome                               string // ok, or the kind of failure
	Took                                  time.Duration
	BytesIn, BytesOut                     int
}

// Do makes the call and returns the upstream's result as it came, unless it
// must be cut. The error is one a caller can act on; its text says how.
func (e *Executor) Do(ctx context.Context, c Call) (result []byte, err error) {
	c.begun = time.Now()
	defer func() { e.observe(c.event(c.begun, outcome(ctx, err), len(result))) }()
	upstream, tool, err := e.find(ctx, &c)
	if err != nil {
		return nil, err
	}
	c.Server, c.Tool = upstream.Name, tool.Name // what is kept of the call keeps nothing of the message
	arguments, err := e.arguments(c, upstream, tool)
	if err != nil {
		return nil, err
	}
	if upstream == e.builtin.upstream {
		result, err = e.builtin.call(ctx, c, arguments)
	} else {
		result, err = e.registry.Call(ctx, c.Server, e.request(c, tool.Name, arguments))
	}
	return e.settle(c, result, err)
}

// event is what became of the call.
func (c Call) event(begin time.Time, outcome string, size int) Event {
	return Event{
		Client: ownerOf(c.Client), Request: c.Request, Server: c.Server, Tool: c.Tool, Outcome: outcome,
		Took: time.Since(begin), BytesIn: len(c.Arguments), BytesOut: size,
	}
}

// settle makes of an upstream's answer what the client is given.
func (e *Executor) settle(c Call, result []byte, err error) ([]byte, error) {
	if err == nil {
		return e.fit(c, result), nil
	}
	var own *jsonrpc.Error
	if errors.As(err, &own) {
		return nil, &Refused{Server: c.Server, Own: own}
	}
	return nil, err
}

// fit cuts a result that is too long.
func (e *Executor) fit(c Call, result []byte) []byte {
	return e.results.Fit(ownerOf(c.Client), result, e.config.Limits.ResultTokens)
}

// Forget drops what was kept for a client that is gone.
func (e *Executor) Forget(client string) { e.results.Forget(client) }

func toolParams(name string, arguments []byte) []byte {
	b := make([]byte, 0, len(`{"name":"","arguments":}`)+len(name)+len(arguments))
	b = rawjson.AppendString(append(b, `{"name":`...), name)
	b = append(append(b, `,"arguments":`...), arguments...)
	return append(b, '}')
}
