package live

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/config"
	"mcpx/internal/listcache"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// Since revision 2026-07-28 MCP has no initialize. How mcpx finds out what an upstream
// speaks depends on the transport:
//
//   - Over HTTP it sends server/discover first. It sends initialize if the response is an error,
//     or in addition if there is no response within discoverTime.
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

// discoverTime is how long mcpx waits for server/discover before it also sends initialize.
const discoverTime = 3 * time.Second

// open opens a session and returns the result of initialize or server/discover.
func (s *Supervisor) open(ctx context.Context) (*Session, []byte, error) {
	session, err := s.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	if s.isWeb() {
		return s.discover(ctx, session)
	}
	if s.base.known.Load().revision == mcp.ProtocolVersion20260728 {
		opened, handshake, err := s.discover(ctx, session)
		if err == nil || ctx.Err() != nil {
			return opened, handshake, err
		}
		if session, err = s.dial(ctx); err != nil { // the process may have ended, or be about to
			return nil, nil, err
		}
	}
	return s.initialize(ctx, session)
}

// isWeb reports whether the upstream gets server/discover first, over HTTP.
func (s *Supervisor) isWeb() bool {
	t := s.Config().Transport
	return t == config.TransportHTTP || t == config.TransportRemote
}

// initialize opens a session with initialize, and with server/discover if that is refused.
func (s *Supervisor) initialize(ctx context.Context, session *Session) (*Session, []byte, error) {
	handshake, err := session.Initialize(ctx)
	if err == nil {
		return session, handshake, nil
	}
	_, isRefused := errors.AsType[*rpc.Error](err)
	refusal := session.abort(err)
	if !isRefused {
		return nil, nil, refusal
	}
	if session, err = s.dial(ctx); err != nil { // the upstream may have closed the first link
		return nil, nil, err
	}
	if handshake, err = session.Discover(ctx); err != nil {
		_ = session.abort(err)
		return nil, nil, refusal
	}
	session.Speak2026(handshake)
	return session, handshake, nil
}

// discover opens a session with server/discover. A remote upstream that refuses it gets
// initialize. If an upstream does not respond within discoverTime, it also gets initialize.
func (s *Supervisor) discover(ctx context.Context, session *Session) (*Session, []byte, error) {
	discovery := session.begin(ctx, session.Discover)
	select {
	case end := <-discovery.end:
		switch {
		case end.err == nil:
			session.Speak2026(end.result)
			return session, end.result, nil
		case ctx.Err() != nil, session.IsOver(), !s.isWeb():
			return nil, nil, session.abort(end.err)
		}
	case <-time.After(discoverTime):
		return s.race(ctx, session, discovery)
	}
	handshake, err := session.Initialize(ctx)
	if err != nil {
		return nil, nil, session.abort(err)
	}
	return session, handshake, nil
}

// race sends initialize while server/discover is pending, and uses the one that succeeds first. A
// remote upstream gets initialize on another link, and may open a session for it.
func (s *Supervisor) race(ctx context.Context, first *Session, discovery handshake) (*Session, []byte, error) {
	second := first
	if s.isWeb() {
		var err error
		if second, err = s.dial(ctx); err != nil {
			return nil, nil, first.abort(err)
		}
	}
	initialization := second.begin(ctx, second.Initialize)
	var refusal error
	for range 2 {
		select {
		case end := <-discovery.end:
			if end.err == nil {
				first.Speak2026(end.result)
				first.discard(second, initialization)
				return first, end.result, nil
			}
			discovery.end = nil
		case end := <-initialization.end:
			if end.err == nil {
				if second == first {
					discovery.cancel(errOtherRevision)
				} else {
					_ = first.abort(errOtherRevision)
				}
				return second, end.result, nil
			}
			initialization.end, refusal = nil, end.err
		}
		if needsPerson(refusal) {
			break
		}
	}
	if ctx.Err() != nil {
		refusal = context.Cause(ctx)
	}
	if second != first {
		_ = first.abort(refusal)
	}
	return nil, nil, second.abort(refusal)
}

// errOtherRevision cancels a handshake because the other one has succeeded.
var errOtherRevision = errors.New("it speaks another revision")

// handshake is a pending server/discover or initialize.
type handshake struct {
	end    <-chan handshakeEnd // nil after its end was received
	cancel context.CancelCauseFunc
	detach func() bool // lets it continue after the start
}

// handshakeEnd is how a handshake ended.
type handshakeEnd struct {
	result []byte
	err    error
}

// begin sends a handshake in the background. The end of ctx cancels it.
func (s *Session) begin(ctx context.Context, request func(ctx context.Context) ([]byte, error)) handshake {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	end := make(chan handshakeEnd, 1)
	task := func() {
		result, err := request(own)
		end <- handshakeEnd{result, err}
	}
	if !s.Background(task) {
		end <- handshakeEnd{err: rpc.ErrClosed}
	}
	return handshake{end, cancel, context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })}
}

// discard ends an initialize that is no longer needed. If it is on another link, the upstream
// may open a session for it. That session must end too. Only the response has its ID, so discard
// waits for it.
func (s *Session) discard(other *Session, h handshake) {
	switch {
	case other == s:
		h.cancel(errOtherRevision)
		return
	case h.end == nil: // it was refused before
		other.Close()
		return
	}
	h.detach()
	wait := func() {
		select {
		case <-h.end:
		case <-time.After(s.Config.StartupTimeout):
		case <-s.Done():
		}
		h.cancel(errOtherRevision)
		other.Close()
	}
	if !s.Background(wait) {
		other.Close()
	}
}

// remember records which revision a new session speaks. Another server than before may
// support others.
func (s *Supervisor) remember(session *Session, handshake []byte) {
	k := &known{server: softwareInfo(handshake)}
	if session.Is2026() {
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
