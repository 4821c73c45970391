// Package server handles the requests of clients: the table of methods, the tools inspect
// and exec, and the errors on the wire. Package front connects it to clients.
package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/logging"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/seal"
	"mcpx/internal/telemetry"
	"mcpx/internal/upstream"
	"mcpx/registry"
)

// Server handles the requests of the clients of one profile, on all fronts. It uses
// mcp-go's types, but not its server (ADR 5).
type Server struct {
	// Later runs a task in the background until the front stops. If it is nil, tasks run
	// at once.
	Later func(task func(ctx context.Context))

	registry    *registry.Registry
	executor    *executor.Executor
	log         zerolog.Logger
	methods     map[string]Method
	lazy        bool // clients see inspect and exec instead of all tools
	bare        bool // clients see one upstream under its own names
	namesOrigin bool // lists name the server of each item
	profile     *config.Profile
	options     Options
	view        config.Expose // set by Exposing
	forwarded   []string      // headers of clients' requests that upstreams get
	rounds      *multiRoundCalls
	meta        string         // a further member of inspect and exec
	whole       *lazyDirectory // for callers without rules
	parts       directories    // for other callers

	configured map[string]bool // names of the upstreams in the profile
}

// Options are what a Server needs besides its profile and executor.
type Options struct {
	Log        zerolog.Logger
	Version    string
	AlwaysLoad bool               // clients that defer tools should show inspect and exec from the start
	SetLevel   func(level string) // sets the level of mcpx's own log; may be nil
	Listed     func()             // called after each tools/list; may be nil
	Rounds     *seal.Box          // seals requestState; may be nil
	Tracer     *telemetry.Tracer  // records spans of requests; nil: none
}

// New returns a Server of the profile's upstreams.
func New(p *config.Profile, r *registry.Registry, e *executor.Executor, o Options) *Server {
	meta := ""
	if o.AlwaysLoad {
		meta = alwaysLoad
	}
	s := &Server{
		registry: r,
		executor: e,
		log:      o.Log,
		profile:  p,
		options:  o,
		lazy:     p.Expose == config.Lazy,
		bare:     p.Expose == config.Flat && !p.Prefix,
		rounds:   newMultiRoundCalls(),
		methods:  Methods,
		meta:     meta,

		forwarded: p.ForwardedHeaders(),
		whole:     newDirectory(p, meta),

		configured: make(map[string]bool, len(p.Upstreams)),
	}
	s.rounds.sealed = newSealedRounds(o.Rounds, p.Name)
	for i := range p.Upstreams {
		s.configured[p.Upstreams[i].Name] = true
	}
	if s.lazy {
		return s
	}
	s.methods = maps.Clone(Methods)
	s.methods["tools/list"] = (*Server).list
	return s
}

// With returns the server with the settings of another config, for clients that connect
// after a reload. Clients that are connected keep the old one, so that their list of tools
// stays the same.
func (s *Server) With(p *config.Profile, o Options) *Server {
	next := New(p, s.registry, s.executor, o)
	next.rounds, next.Later = s.rounds, s.Later
	return next
}

// Exposing returns the server in another mode, for clients that choose the mode, such as
// the console. Its lists name the upstream of each item.
func (s *Server) Exposing(mode config.Expose) *Server {
	p := *s.profile
	p.Expose = mode
	view := s.With(&p, s.options)
	view.view, view.namesOrigin = mode, p.Prefix
	return view
}

// Continues reports whether a client of another server may go on with this one: both have
// the same upstreams and the same mode. One of them may be from before a reload.
func (s *Server) Continues(other *Server) bool {
	return s.SharesUpstreams(other) && s.view == other.view
}

// SharesUpstreams reports whether both servers are of the same schema.
func (s *Server) SharesUpstreams(other *Server) bool { return s.registry == other.registry }

// Method runs one request. It returns the result, or an error whose code and data the
// client gets.
type Method func(s *Server, ctx context.Context, c *Client, m rpc.Message) (result []byte, err error)

// Methods is the table of methods. Flat mode replaces tools/list.
var Methods = map[string]Method{
	"initialize":               (*Server).initialize,
	"ping":                     (*Server).ping,
	"tools/list":               (*Server).listLazy,
	"tools/call":               (*Server).callToolAndWait,
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

// accept handles one message of a client. When it returns, a request can be canceled and
// initialize is done, since later messages depend on these. For a request, respond is
// called once, perhaps before accept returns: with the response, or nil if the client
// has canceled the request. respond must not wait, and neither does accept.
func (s *Server) accept(ctx context.Context, c *Client, m rpc.Message, respond func(response []byte)) {
	if start := s.begin(ctx, c, m); start != nil {
		start(respond)
	}
}

// begin handles a notification or a response and returns nil. It registers a request, so
// that the client can cancel it, and returns the function that starts it.
func (s *Server) begin(ctx context.Context, c *Client, m rpc.Message) (start func(respond func(response []byte))) {
	if c.Conn.Receive(m, nil) {
		return nil
	}
	if m.IsNotification() {
		s.notified(c, m)
		return nil
	}
	c.markReachable()
	s.log.Debug().Str("client", c.id).Bytes("request", m.ID).Str("method", m.Method).Msg("request")
	ctx, span := s.startSpan(ctx, c, m)
	in, _ := c.Conn.Begin(ctx, m.ID, 0)
	return func(respond func(response []byte)) {
		s.serve(in, c, m, func(result, line []byte, err error) {
			isCancelled := in.IsCancelledBy(ErrCancelled)
			in.End()
			endSpan(span, isCancelled, result, err)
			if m.Method == "tools/list" && s.options.Listed != nil {
				s.options.Listed()
			}
			switch {
			case isCancelled:
				respond(nil)
			case err != nil:
				respond(rpc.AppendError(nil, m.ID, WireError(err)))
			default:
				respond(rpc.ResponseIn(line, m.ID, result))
			}
		})
	}
}

// serve runs a request. Tool calls need no goroutine, because callTool never waits.
// initialize has none, because its response must be the first.
func (s *Server) serve(ctx context.Context, c *Client, m rpc.Message, done rpc.Done) {
	switch {
	case m.Method == "tools/call" && !IsModern(m.Params):
		s.callTool(ctx, c, m, done)
	case m.Method == "initialize":
		s.runWithDone(ctx, c, m, done)
	default:
		go s.runWithDone(ctx, c, m, done)
	}
}

// runWithDone is run with a Done.
func (s *Server) runWithDone(ctx context.Context, c *Client, m rpc.Message, done rpc.Done) {
	result, err := s.run(ctx, c, m)
	done(result, nil, err)
}

// run finds the method of a request and runs it.
func (s *Server) run(ctx context.Context, c *Client, m rpc.Message) (_ []byte, err error) {
	defer s.recovered(m.Method, &err)
	if m.Method != "tools/call" { // readCall checks for duplicates itself
		if err := duplicateKey(rawjson.DuplicateKey(m.Params)...); err != nil {
			return nil, err
		}
	}
	if IsModern(m.Params) {
		return s.modern(ctx, c, m)
	}
	run, ok := s.methods[m.Method]
	if !ok {
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "Method '%s' not found", m.Method)
	}
	params, err := checkParams(m.Params)
	if err != nil {
		return nil, err
	}
	m.Params = params
	return run(s, ctx, c, m)
}

// checkParams returns the params of a request, nil for null, which some clients send.
func checkParams(params []byte) ([]byte, error) {
	switch rawjson.Kind(params) {
	case 0:
	case '{':
		if bytes.Contains(params, []byte("_meta")) {
			if meta := rawjson.Get(params, "_meta"); !rawjson.IsNull(meta) && rawjson.Kind(meta) != '{' {
				return nil, invalidParams(`"_meta" must be an object`)
			}
		}
	case 'n':
		return nil, nil
	default:
		return nil, invalidParams(`"params" must be an object`)
	}
	return params, nil
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
		logging.Panic(s.log.Error().Str("method", method), p).Msg("panic in request handler")
		*err = fmt.Errorf("internal error in %s", method)
	}
}

// initialize handles initialize: it negotiates the revision.
func (s *Server) initialize(_ context.Context, c *Client, m rpc.Message) ([]byte, error) {
	version, ok := rawjson.String(rawjson.Get(m.Params, "protocolVersion"))
	if !ok {
		return nil, invalidParams(`"protocolVersion" must be a string`)
	}
	params := exactly(m.Params, "protocolVersion", "capabilities", "clientInfo")
	if err := json.Unmarshal(params, &mcp.InitializeParams{}); err != nil {
		return nil, invalidParams("the params of initialize are not as MCP defines them")
	}
	if version < mcp.ProtocolVersion20241105 {
		return nil, rpc.Errorf(rpc.CodeServer, "Unsupported protocol version: %s", version)
	}
	version = mcp.NegotiateLegacyVersion(version)
	c.SetInitialized(version, rawjson.Get(m.Params, "capabilities"))
	return json.Marshal(mcp.InitializeResult{ProtocolVersion: version, Capabilities: capabilities, ServerInfo: s.implementation(), Instructions: s.instructions(c)})
}

// exactly returns an object with only the members that have these keys. encoding/json
// would ignore the case of keys, so that "CAPABILITIES" could replace "capabilities".
func exactly(object []byte, keys ...string) []byte {
	b := []byte("{")
	for key, value := range rawjson.Members(object) {
		if slices.Contains(keys, key) {
			b = rawjson.AppendMember(b, key, value)
		}
	}
	return append(b, '}')
}

// notified handles a notification of the client.
func (s *Server) notified(c *Client, m rpc.Message) {
	switch m.Method {
	case "notifications/initialized":
		c.markReachable()
	case "notifications/roots/list_changed":
		s.registry.Broadcast(c, m.Method, m.Params)
	case "notifications/exit":
		c.exit()
	}
}

// ping handles ping.
func (s *Server) ping(context.Context, *Client, rpc.Message) ([]byte, error) {
	return []byte("{}"), nil
}

// capabilities are the same for every client, whatever the upstreams can do.
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

// implementation returns the serverInfo of mcpx.
func (s *Server) implementation() mcp.Implementation {
	return mcp.Implementation{Name: "mcpx", Version: s.options.Version}
}

// shutdown handles shutdown, which some clients know from other protocols. It does
// nothing: notifications/exit stops mcpx.
func (s *Server) shutdown(context.Context, *Client, rpc.Message) ([]byte, error) {
	return []byte("{}"), nil
}

// Revisions returns the MCP revisions that clients may speak, the oldest first.
func Revisions() []string {
	revisions := slices.Clone(mcp.ValidProtocolVersions)
	slices.Sort(revisions)
	return revisions
}

// Attach makes a client known to upstreams until Detach.
func (s *Server) Attach(c *Client) { s.registry.Attach(c) }

// Forget drops the kept results of a client. Other replicas can still read those that are
// shared.
func (s *Server) Forget(c *Client) { s.executor.Forget(c.id) }

// Remove drops the kept results of a client that has ended its session, on all replicas.
func (s *Server) Remove(c *Client) { s.executor.Remove(c.id) }

// Detach ends the subscriptions and the per-client upstream sessions of a client that is
// gone. It does not wait: unsubscribe sends the requests to upstreams, and may wait for them.
func (s *Server) Detach(c upstream.Client) (unsubscribe func(ctx context.Context)) {
	requests := s.registry.Remove(c)
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, detachTime)
		defer cancel()
		requests(ctx)
	}
}

// detachLater is Detach for callers that must not wait.
func (s *Server) detachLater(c upstream.Client) {
	unsubscribe := s.Detach(c)
	if s.Later == nil {
		unsubscribe(context.Background())
		return
	}
	s.Later(unsubscribe)
}

// detachTime bounds the requests to upstreams for a client that is gone.
const detachTime = 30 * time.Second

// Upstreams returns the state of the profile's upstreams that a client sees, in config
// order.
func (s *Server) Upstreams(c upstream.Client) []*registry.Upstream {
	return s.registry.For(c).Catalog().Upstreams
}

// ForwardedHeaders returns the headers of clients' requests that upstreams get.
func (s *Server) ForwardedHeaders() []string { return s.forwarded }

// View names the profile and the mode that the client chose. Every replica with the same
// config can continue a client session of the same view.
func (s *Server) View() string { return s.profile.Name + "?expose=" + string(s.view) }

// Schema returns the name of the profile.
func (s *Server) Schema() string { return s.profile.Name }

// Registry returns the registry of the profile's upstreams.
func (s *Server) Registry() *registry.Registry { return s.registry }

// Log returns the log of the server.
func (s *Server) Log() *zerolog.Logger { return &s.log }

// Version returns the version of mcpx.
func (s *Server) Version() string { return s.options.Version }
