// Package server handles the requests of clients: the table of methods, the tools inspect
// and exec, and the errors on the wire. Packages front and stdio connect it to
// clients.
package server

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/rawjson"
	"mcpx/internal/seal"
	"mcpx/registry"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Server handles the requests of the clients of one profile, on all fronts. It uses
// mcp-go's types, but not its server (ADR 5).
type Server struct {
	Options
	// Later runs a task in the background until the front stops. If it is nil, tasks run
	// at once.
	Later func(task func(ctx context.Context))

	registry    *registry.Registry
	executor    *executor.Executor
	lazy        bool // clients see inspect and exec instead of all tools
	bare        bool // clients see one upstream under its own names
	namesOrigin bool // lists name the server of each item
	profile     *config.Profile
	view        config.Expose // set by Exposing
	forwarded   []string      // headers of clients' requests that upstreams get
	rounds      *multiRoundCalls
	info        []byte // name and version, for clients of 2026-07-28

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
	Tracer     Tracer             // records spans of requests; nil: none
}

// Times to stop a front. Stopping the upstreams takes up to four seconds more, so that
// mcpx stops within ten seconds.
const (
	DrainTime  = 5 * time.Second        // for unfinished calls to finish
	CancelTime = 500 * time.Millisecond // for canceled calls to end
)

// ErrStopping is the cause for canceling calls that are unfinished after DrainTime.
var ErrStopping = errors.New("mcpx is stopping; the call was canceled")

// New returns a Server of the profile's upstreams.
func New(p *config.Profile, r *registry.Registry, e *executor.Executor, o Options) *Server {
	s := &Server{
		Options:  o,
		registry: r,
		executor: e,
		profile:  p,
		lazy:     p.Expose == config.Lazy,
		bare:     p.Expose == config.Flat && !p.Prefix,
		rounds:   newMultiRoundCalls(),
		info:     append(rawjson.AppendString([]byte(`{"name":"mcpx","version":`), o.Version), '}'),

		forwarded:  p.ForwardedHeaders(),
		configured: make(map[string]bool, len(p.Upstreams)),
	}
	s.rounds.sealed = newSealedRounds(o.Rounds, p.Name)
	for i := range p.Upstreams {
		s.configured[p.Upstreams[i].Name] = true
	}
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
	view := s.With(&p, s.Options)
	view.view, view.namesOrigin = mode, p.Prefix
	return view
}

// Continues reports whether a client of another server may go on with this one: both have
// the same upstreams and the same mode. One of them may be from before a reload.
func (s *Server) Continues(other *Server) bool {
	return s.registry == other.registry && s.view == other.view
}

// Attach makes a client known to upstreams until Detach.
func (s *Server) Attach(c *Client) { s.registry.Attach(c) }

// Left is called when a client that stays attached has closed its streams.
func (s *Server) Left(c *Client) { s.registry.Left(c) }

// Forget drops the kept results of a client. Other replicas can still read those that are
// shared.
func (s *Server) Forget(c *Client) { s.executor.Forget(c.id) }

// Remove drops the kept results of a client that has ended its session, on all
// replicas.
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
func (s *Server) Upstreams(c upstream.Client) []*live.Upstream {
	return s.registry.For(c).Catalog().Upstreams
}

// ForwardedHeaders returns the headers of clients' requests that upstreams get.
func (s *Server) ForwardedHeaders() []string { return s.forwarded }

// View names the profile and the mode that the client chose. Every replica with the same
// config can continue a client session of the same view.
func (s *Server) View() string { return s.profile.Name + "?expose=" + string(s.view) }

// ProfileName returns the name of the profile.
func (s *Server) ProfileName() string { return s.profile.Name }

// Disabled returns the servers that the config file disables.
func (s *Server) Disabled() (list []config.Upstream) {
	for _, u := range s.profile.All() {
		if u.Disabled() {
			list = append(list, u)
		}
	}
	return list
}

// Registry returns the registry of the profile's upstreams.
func (s *Server) Registry() *registry.Registry { return s.registry }

// Executor returns the executor of the profile's calls.
func (s *Server) Executor() *executor.Executor { return s.executor }
