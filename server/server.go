// Package server is what clients connect to: the fronts, the two tools, and
// what is said on the wire.
package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// Server answers the clients of one profile, whatever front they come through.
// What it relays it answers itself, so that bytes stay bytes; mcp-go's server
// answers the rest.
type Server struct {
	registry *registry.Registry
	executor *executor.Executor
	mcp      *mcpserver.MCPServer
	log      zerolog.Logger
	methods  map[string]method
	lazy     bool // two tools instead of all
	bare     bool // one upstream under its own names: as if it were not behind mcpx
	origins  bool // lists say whose each thing is
	profile  *config.Profile
	options  Options
	rounds   rounds
	lastID   atomic.Int64 // of the requests handed to mcp-go
}

// Options are what a Server needs besides its profile and executor.
type Options struct {
	Log      zerolog.Logger
	Version  string
	SetLevel func(level string) // sets the level of mcpx's own log; may be nil
}

// New returns a Server of the profile's upstreams.
func New(p *config.Profile, r *registry.Registry, e *executor.Executor, o Options) *Server {
	s := &Server{
		registry: r,
		executor: e,
		log:      o.Log,
		profile:  p,
		options:  o,
		lazy:     p.Expose == config.Lazy,
		bare:     p.Expose == config.Flat && !p.Prefix,
		rounds:   rounds{parked: map[string]*round{}},
		methods:  methods,
		mcp: mcpserver.NewMCPServer("mcpx", o.Version,
			mcpserver.WithToolCapabilities(true),
			mcpserver.WithResourceCapabilities(true, true),
			mcpserver.WithPromptCapabilities(true),
			mcpserver.WithCompletions(),
			mcpserver.WithLogging(),
		),
	}
	if s.lazy {
		s.mcp.AddTools(lazyTools(p)...)
		return s
	}
	s.methods = maps.Clone(methods)
	s.methods["tools/list"], s.methods["tools/call"] = (*Server).list, (*Server).callFlat
	return s
}

// exposing is the server for clients that choose themselves how tools are shown,
// whatever the config says: the console is one. They hear whose each thing is.
func (s *Server) exposing(how config.Expose) *Server {
	p := *s.profile
	p.Expose = how
	view := New(&p, s.registry, s.executor, s.options)
	view.origins = p.Prefix
	return view
}

// method answers one request with a result, or with an error whose code and data
// the client hears.
type method func(s *Server, ctx context.Context, c *Client, m jsonrpc.Message) (result []byte, err error)

// methods is what mcpx understands. Flat mode has its own tools/list and
// tools/call.
var methods = map[string]method{
	"initialize":               (*Server).initialize,
	"ping":                     (*Server).delegate,
	"tools/list":               (*Server).listTwo,
	"tools/call":               (*Server).callTool,
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
	"shutdown":                 (*Server).shutdown,
}

// Accept takes one message of a client. What the client says next may build on
// it: a cancellation on its request, everything on initialize. What Accept
// returns makes the answer to write, which may take its time, or nil for a call
// that the client has cancelled. It returns nil for what has no answer.
func (s *Server) Accept(ctx context.Context, c *Client, m jsonrpc.Message) (answer func() []byte) {
	switch {
	case m.IsNotification():
		s.notified(c, m)
		return nil
	case m.IsResponse():
		if !c.answered(m) {
			s.log.Debug().Bytes("id", m.ID).Msg("dropped an answer that nothing waits for")
		}
		return nil
	}
	c.listens()
	ctx, done := c.begin(ctx, m.ID)
	answer = func() []byte {
		defer done()
		result, err := s.answer(ctx, c, m)
		switch {
		case errors.Is(context.Cause(ctx), errCancelled):
			return nil
		case err != nil:
			return jsonrpc.AppendError(nil, m.ID, wireError(err))
		}
		return jsonrpc.AppendResult(make([]byte, 0, len(result)+len(m.ID)+64), m.ID, result)
	}
	if m.Method == "initialize" {
		opened := answer()
		return func() []byte { return opened }
	}
	return answer
}

// answer finds the method and runs it.
func (s *Server) answer(ctx context.Context, c *Client, m jsonrpc.Message) ([]byte, error) {
	if isModern(m.Params) {
		return s.modern(ctx, c, m)
	}
	run, ok := s.methods[m.Method]
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method '%s' not found", m.Method)
	}
	switch rawjson.Kind(m.Params) {
	case 0:
	case '{':
		if bytes.Contains(m.Params, []byte("_meta")) { // seldom: it need not be looked for
			if meta := rawjson.Get(m.Params, "_meta"); !rawjson.IsNull(meta) && rawjson.Kind(meta) != '{' {
				return nil, invalidParams(`"_meta" must be an object`)
			}
		}
	case 'n':
		m.Params = nil // some clients write what they leave out
	default:
		return nil, invalidParams(`"params" must be an object`)
	}
	return s.safely(ctx, run, c, m)
}

// safely runs a method. A panic costs the one request.
func (s *Server) safely(ctx context.Context, run method, c *Client, m jsonrpc.Message) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error().Str("method", m.Method).Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("a request failed in a way it never should")
			err = fmt.Errorf("internal error in %s", m.Method)
		}
	}()
	return run(s, ctx, c, m)
}

// initialize opens the conversation.
func (s *Server) initialize(ctx context.Context, c *Client, m jsonrpc.Message) ([]byte, error) {
	version, ok := rawjson.String(rawjson.Get(m.Params, "protocolVersion"))
	if !ok {
		return nil, invalidParams(`"protocolVersion" must be a string`)
	}
	if version < mcp.ProtocolVersion20241105 {
		return nil, jsonrpc.Errorf(jsonrpc.CodeServer, "Unsupported protocol version: %s", version)
	}
	result, err := s.delegate(ctx, c, m)
	if err == nil {
		c.opened(mcp.NegotiateLegacyVersion(version), rawjson.Get(m.Params, "capabilities"))
	}
	return result, err
}

// notified takes a notification of the client.
func (s *Server) notified(c *Client, m jsonrpc.Message) {
	switch m.Method {
	case "notifications/initialized":
		c.listens()
	case "notifications/cancelled":
		c.cancelled(m.Params)
	case "notifications/roots/list_changed":
		s.registry.Tell(m.Method, m.Params)
	case "notifications/exit":
		c.exit()
	}
}

// delegate has mcp-go answer. It gets an id of our own, since it would read the
// client's as a float64; the client's goes around it.
func (s *Server) delegate(ctx context.Context, _ *Client, m jsonrpc.Message) ([]byte, error) {
	request := jsonrpc.AppendRequest(nil, strconv.AppendInt(nil, s.lastID.Add(1), 10), m.Method, m.Params)
	switch answer := s.mcp.HandleMessage(ctx, request).(type) {
	case mcp.JSONRPCResponse:
		return json.Marshal(answer.Result)
	case mcp.JSONRPCError:
		if answer.Error.Code == mcp.INVALID_REQUEST { // it could not read the params
			return nil, invalidParams("the params of " + m.Method + " are not as MCP has them")
		}
		e := &jsonrpc.Error{Code: answer.Error.Code, Message: answer.Error.Message}
		if answer.Error.Data != nil {
			e.Data, _ = json.Marshal(answer.Error.Data)
		}
		return nil, e
	default:
		return nil, fmt.Errorf("mcp-go has no answer to %s", m.Method)
	}
}

// shutdown is asked for by clients that know it from other protocols: the
// process ends with their notifications/exit.
func (s *Server) shutdown(context.Context, *Client, jsonrpc.Message) ([]byte, error) {
	return []byte("{}"), nil
}

// Revisions are the MCP revisions that clients may speak, the oldest first.
func Revisions() []string {
	revisions := slices.Clone(mcp.ValidProtocolVersions)
	slices.Sort(revisions)
	return revisions
}
