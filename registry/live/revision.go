package live

import (
	"bytes"
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/config"
	"mcpx/internal/listcache"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// Since revision 2026-07-28 MCP has no initialize. How mcpx finds out what an upstream
// speaks depends on the transport:
//
//   - Over HTTP it sends server/discover first, and initialize after any other answer.
//   - Over stdio some servers exit on an unknown first request, and some never answer it.
//     mcpx sends initialize first, which is the fastest start for nearly all, and
//     server/discover only if that is refused. If the client of the first call speaks
//     2026-07-28, the server gets server/discover before it. A server that supports both
//     goes on with 2026-07-28. The outcome is kept with the lists on disk, so each server is
//     asked once.

// known is what the last start has shown about the revision of an upstream.
type known struct {
	revision  string // of the last session when it was opened; "": nothing is known
	server    []byte // how it describes itself; another server may support other revisions
	isEarlier bool   // it does not support 2026-07-28
}

// open opens a session and returns the result of initialize or server/discover.
func (s *Supervisor) open(ctx context.Context) (*Session, []byte, error) {
	isWeb := s.Config().Transport == config.TransportHTTP || s.Config().Transport == config.TransportRemote
	session, err := s.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	if isWeb || s.base.known.Load().revision == mcp.ProtocolVersion20260728 {
		handshake, err := session.Discover(ctx)
		switch {
		case err == nil:
			session.SpeakModern(handshake)
			return session, handshake, nil
		case ctx.Err() != nil, isWeb && session.IsOver():
			return nil, nil, session.abort(err)
		case !isWeb: // it may have ended, or is about to
			_ = session.abort(err)
			if session, err = s.dial(ctx); err != nil {
				return nil, nil, err
			}
		}
	}
	handshake, err := session.Initialize(ctx)
	if err == nil {
		return session, handshake, nil
	}
	_, isRefused := errors.AsType[*rpc.Error](err)
	refusal := session.abort(err)
	if !isRefused || isWeb {
		return nil, nil, refusal
	}
	if session, err = s.dial(ctx); err != nil { // the upstream may have closed the first link
		return nil, nil, err
	}
	if handshake, err = session.Discover(ctx); err != nil {
		_ = session.abort(err)
		return nil, nil, refusal
	}
	session.SpeakModern(handshake)
	return session, handshake, nil
}

// remember records which revision a new session speaks. Another server than before may
// support others.
func (s *Supervisor) remember(session *Session, handshake []byte) {
	k := &known{server: softwareInfo(handshake)}
	if session.IsModern() {
		k.revision = mcp.ProtocolVersion20260728
		s.base.known.Store(k)
		return
	}
	k.revision, _ = rawjson.String(rawjson.Get(handshake, "protocolVersion"))
	before := s.base.known.Load()
	k.isEarlier = before.isEarlier && bytes.Equal(before.server, k.server)
	s.base.known.Store(k)
}

// recall reads from the cache what the last start has shown.
func (s *Supervisor) recall(found listcache.Entry) {
	s.base.known.Store(&known{revision: found.Revision, server: found.Server, isEarlier: found.IsEarlier})
}
