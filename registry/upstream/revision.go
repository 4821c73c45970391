package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mcpx/config"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/tasks"

	"github.com/mark3labs/mcp-go/mcp"
)

// upgradeTime bounds the wait for the response to server/discover while a call waits. Servers
// that do not know the method may never respond.
const upgradeTime = 500 * time.Millisecond

// initializeParams returns the params of initialize. They declare every capability that a
// client may have, since an upstream's tools may depend on it. If a client lacks one,
// mcpx responds to the upstream with an error.
func initializeParams(version string) []byte {
	b := []byte(`{"protocolVersion":"` + mcp.LATEST_LEGACY_PROTOCOL_VERSION +
		`","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"mcpx","version":`)
	return append(rawjson.AppendString(b, version), "}}"...)
}

// Initialize makes the handshake of revisions before 2026-07-28.
func (s *Session) Initialize(ctx context.Context) ([]byte, error) {
	handshake, err := s.Request(ctx, "initialize", initializeParams(s.Version))
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	if err := s.conn.Notify("notifications/initialized", nil); err != nil {
		return nil, err
	}
	if s.Config.Transport != config.TransportStdio { // mcpx notices the end of a process without pings
		s.tasks.Go(s.keepAlive)
	}
	return handshake, nil
}

// Discover sends server/discover, and fails unless the upstream supports 2026-07-28.
func (s *Session) Discover(ctx context.Context) ([]byte, error) {
	request := rpc.Request{Method: "server/discover", Meta: meta2026(s.Version)}
	result, err := s.conn.Call(ctx, request)
	var refused *rpc.Error
	if errors.As(err, &refused) && refused.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION && supports(rawjson.Get(refused.Data, "supported")) {
		result, err = s.conn.Call(ctx, request)
	}
	if err != nil {
		return nil, fmt.Errorf("server/discover: %w", err)
	}
	versions := rawjson.Get(result, "supportedVersions")
	if !supports(versions) {
		return nil, fmt.Errorf("server/discover: it supports %s, and not %s", versions, mcp.ProtocolVersion20260728)
	}
	return result, nil
}

// supports reports whether a list of revisions has 2026-07-28.
func supports(versions []byte) bool {
	return slices.ContainsFunc(slices.Collect(rawjson.Elements(versions)), func(v []byte) bool {
		return string(v) == `"`+mcp.ProtocolVersion20260728+`"`
	})
}

// Speak2026 makes 2026-07-28 the revision of the upstream session. It returns the
// generation of the first filter of subscriptions/listen.
func (s *Session) Speak2026(handshake []byte) (generation int) {
	m := &state2026{meta2026(s.Version), filterState{changed: tasks.NewSignal(), news: make(chan struct{})}}
	generation = m.request()
	s.spoken.Store(m)
	s.tasks.Go(func() { s.listen(rawjson.Get(handshake, "capabilities")) })
	return generation
}

// mayUpgrade reports whether the session may go on with 2026-07-28: the client of the
// first call speaks it, and the upstream may speak it too.
func (s *Session) mayUpgrade(c Client) bool {
	client, ok := c.(InputClient)
	if !ok || s.Config.Transport != config.TransportStdio || client.Revision() < mcp.ProtocolVersion20260728 || !s.Host.MaySpeak2026() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.callers.first == ""
}

// upgrade makes 2026-07-28 the revision of the session if the upstream supports it.
// Otherwise the host records that it does not, also if the upstream exits.
func (s *Session) upgrade(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, upgradeTime)
	defer cancel()
	handshake, err := s.Discover(limited)
	if err == nil {
		return s.waitListening(ctx, s.Speak2026(handshake))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.Log.Debug().Str("error", s.Host.Redact(err.Error())).Msg("it does not support 2026-07-28")
	s.Host.SpeaksEarlier()
	if s.IsOver() {
		return rpc.ErrClosed // the next session gets the call
	}
	return nil
}

// revisionBytes bounds the revision that an upstream names.
const revisionBytes = 200

// Revision returns the revision of MCP that the upstream session speaks.
func (s *Session) Revision(handshake []byte) string {
	if s.state2026() != nil {
		return mcp.ProtocolVersion20260728
	}
	revision, _ := rawjson.String(rawjson.Get(handshake, "protocolVersion"))
	return plain.Cut(plain.Line(revision), revisionBytes)
}
