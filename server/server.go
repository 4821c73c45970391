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
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// Server answers the clients of one profile, whatever front they come through.
// The types are mcp-go's; its server is not used (ADR 5).
type Server struct {
	registry *registry.Registry
	executor *executor.Executor
	log      zerolog.Logger
	methods  map[string]method
	lazy     bool // two tools instead of all
	bare     bool // one upstream under its own names: as if it were not behind mcpx
	origins  bool // lists say whose each thing is
	profile  *config.Profile
	options  Options
	rounds   rounds
	two      []byte // the answer to tools/list in lazy mode

	lazyInstructions string
	later            func(task func(ctx context.Context)) // runs a task that the front ends when it stops; nil: at once
}

// Options are what a Server needs besides its profile and executor.
type Options struct {
	Log        zerolog.Logger
	Version    string
	AlwaysLoad bool               // asks clients that defer tools to show the two tools from the start
	SetLevel   func(level string) // sets the level of mcpx's own log; may be nil
	Listed     func()             // is called when a client has received the list of tools; may be nil
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
		two:      lazyTools(p, o.AlwaysLoad),

		lazyInstructions: lazyInstructions(p),
	}
	if s.lazy {
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
	"ping":                     (*Server).ping,
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
	s.logRequest(c, m)
	ctx, done := c.begin(ctx, m.ID)
	answer = func() []byte {
		defer done()
		result, err := s.answer(ctx, c, m)
		if m.Method == "tools/list" && s.options.Listed != nil {
			s.options.Listed()
		}
		switch {
		case errors.Is(context.Cause(ctx), errCancelled):
			return nil
		case err != nil:
			return jsonrpc.AppendError(nil, m.ID, wireError(err))
		}
		return jsonrpc.AnswerIn(nil, m.ID, result)
	}
	if m.Method == "initialize" {
		opened := answer()
		return func() []byte { return opened }
	}
	return answer
}

// logRequest logs a request as it comes in. Calls are logged once more when they are
// over, with what became of them.
func (s *Server) logRequest(c *Client, m jsonrpc.Message) {
	s.log.Debug().Str("client", c.id).Bytes("request", m.ID).Str("method", m.Method).Msg("request")
}

// answer finds the method and runs it.
func (s *Server) answer(ctx context.Context, c *Client, m jsonrpc.Message) ([]byte, error) {
	if m.Method != "tools/call" { // which looks itself, on its way
		if err := givenTwice(rawjson.DuplicateKey(m.Params)...); err != nil {
			return nil, err
		}
	}
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

// givenTwice is the error of params that give a key twice: two readers of them
// could take different values. What is inside the arguments of a tool is left to
// whoever knows the tool.
func givenTwice(path ...string) error {
	if len(path) == 0 {
		return nil
	}
	return invalidParams(fmt.Sprintf("%q is given twice", strings.Join(path, ".")))
}

// safely runs a method. A panic costs the one request.
func (s *Server) safely(ctx context.Context, run method, c *Client, m jsonrpc.Message) (result []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(m.Method, p)
			err = internalError(m.Method)
		}
	}()
	return run(s, ctx, c, m)
}

func (s *Server) panicked(method string, p any) {
	s.log.Error().Str("method", method).Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("panic in request handler")
}

func internalError(method string) error { return fmt.Errorf("internal error in %s", method) }

// initialize opens the conversation.
func (s *Server) initialize(_ context.Context, c *Client, m jsonrpc.Message) ([]byte, error) {
	version, ok := rawjson.String(rawjson.Get(m.Params, "protocolVersion"))
	if !ok {
		return nil, invalidParams(`"protocolVersion" must be a string`)
	}
	params := exactly(m.Params, "protocolVersion", "capabilities", "clientInfo")
	if err := json.Unmarshal(params, &mcp.InitializeParams{}); err != nil {
		return nil, invalidParams("the params of initialize are not as MCP has them")
	}
	if version < mcp.ProtocolVersion20241105 {
		return nil, jsonrpc.Errorf(jsonrpc.CodeServer, "Unsupported protocol version: %s", version)
	}
	version = mcp.NegotiateLegacyVersion(version)
	c.opened(version, rawjson.Get(m.Params, "capabilities"))
	return json.Marshal(mcp.InitializeResult{ProtocolVersion: version, Capabilities: capabilities, ServerInfo: s.implementation(), Instructions: s.instructions()})
}

// exactly is an object with those of its members alone. encoding/json folds the
// case of keys: another spelling of one must not take its place.
func exactly(object []byte, keys ...string) []byte {
	b := []byte("{")
	for key, value := range rawjson.Members(object) {
		if slices.Contains(keys, key) {
			b = rawjson.AppendMember(b, key, value)
		}
	}
	return append(b, '}')
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

// ping answers that mcpx is there.
func (s *Server) ping(context.Context, *Client, jsonrpc.Message) ([]byte, error) {
	return []byte("{}"), nil
}

// capabilities are what every client may use, whatever the upstreams can do.
var capabilities = mcp.ServerCapabilities{
	Tools: &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{true},
	Resources: &struct {
		Subscribe   bool `json:"subscribe,omitempty"`
		ListChanged bool `json:"listChanged,omitempty"`
	}{true, true},
	Prompts: &struct {
		ListChanged bool `json:"listChanged,omitempty"`
	}{true},
	Logging:     &struct{}{},
	Completions: &struct{}{},
}

// implementation is mcpx as it says of itself.
func (s *Server) implementation() mcp.Implementation {
	return mcp.Implementation{Name: "mcpx", Version: s.options.Version}
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
