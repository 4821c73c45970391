package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// From its revision 2026-07-28 on MCP has no initialize: every request says what
// it speaks, a server asks its client by answering with what it needs, and tells
// it of changes in one long answer. An upstream is met in the old way first,
// which nearly all understand, and in the new way only if it asks for it.

// modern is what a session of the new way has besides.
type modern struct {
	meta []byte // members of every request's _meta
	listener
}

// modernPrefix begins the keys of _meta that the new way has.
const modernPrefix = "io.modelcontextprotocol/"

// maxRounds bounds how often one call may need something of its client.
const maxRounds = 10

// wantsModern reports whether an upstream's answer to initialize says that it
// speaks the new way.
func wantsModern(err error) bool {
	var e *jsonrpc.Error
	return errors.As(err, &e) && (e.Code == jsonrpc.CodeMethodNotFound || e.Code == mcp.UNSUPPORTED_PROTOCOL_VERSION)
}

// openModern connects anew, since the first message may have spoiled the old
// connection, and asks the upstream who it is.
func openModern(ctx context.Context, c *config.Upstream, o Options, log zerolog.Logger, p peer) (*Session, []byte, error) {
	link, err := dial(ctx, c, o, log)
	if err != nil {
		return nil, nil, err
	}
	session := newSession(c, link, log, p)
	session.modern = &modern{modernMeta(o.Version), newListener()}
	session.tasks.Go(session.run)
	hello, err := session.Call(ctx, Request{Method: "server/discover", Meta: []byte("{}")})
	if err != nil {
		return nil, nil, session.abort(fmt.Errorf("server/discover: %w", err))
	}
	versions := rawjson.Get(hello, "supportedVersions")
	if !slices.ContainsFunc(slices.Collect(rawjson.Elements(versions)), func(v []byte) bool {
		return string(v) == `"`+mcp.ProtocolVersion20260728+`"`
	}) {
		return nil, nil, session.abort(fmt.Errorf("it refuses initialize, and speaks %s, of which mcpx knows none", versions))
	}
	session.tasks.Go(func() { session.listen(rawjson.Get(hello, "capabilities")) })
	return session, hello, nil
}

func modernMeta(version string) []byte {
	hello := greeting(version)
	meta := rawjson.AppendString([]byte(`{"`+mcp.MetaKeyProtocolVersion+`":`), mcp.ProtocolVersion20260728)
	meta = rawjson.AppendMember(meta, mcp.MetaKeyClientInfo, rawjson.Get(hello, "clientInfo"))
	return append(rawjson.AppendMember(meta, mcp.MetaKeyClientCapabilities, rawjson.Get(hello, "capabilities")), '}')
}

// inRounds makes a call in the new way: as often as the upstream needs something
// of the client.
func (s *Session) inRounds(ctx context.Context, r Request) ([]byte, error) {
	switch r.Method {
	case "resources/subscribe": // listen has them all
		return []byte("{}"), s.listens(ctx, s.modern.want())
	case "resources/unsubscribe":
		s.modern.want()
		return []byte("{}"), nil
	case "logging/setLevel":
		return []byte("{}"), nil
	}
	meta := s.modern.meta
	for key, value := range rawjson.Members(r.Meta) {
		if !strings.HasPrefix(key, modernPrefix) { // those are mcpx's own to say
			meta = rawjson.With(meta, key, value)
		}
	}
	if level := s.peer.level(); level != "" {
		meta = rawjson.With(meta, mcp.MetaKeyLogLevel, rawjson.AppendString(nil, level))
	}
	r.Meta = meta
	if most := r.MaxTimeout; most > 0 { // of all rounds, and of what the client thinks between them
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, most, &Timeout{Server: s.server, Key: "max_timeout", Limit: most})
		defer cancel()
		r.MaxTimeout = 0
	}
	for round := range maxRounds {
		result, err := s.call(ctx, r)
		if round > 0 && errors.Is(err, errOver) { // this round was not sent, but those before were
			<-s.ctx.Done()
			return nil, s.lost(s.err)
		}
		if err != nil || string(rawjson.Get(result, "resultType")) != `"input_required"` {
			return result, err
		}
		if r.Client == nil {
			return nil, errors.New("the upstream asks for a client, but the call is mcpx's own")
		}
		if r.Params, err = s.answers(ctx, r, result); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the upstream asked for more input %d times", maxRounds)
}

// answers are the params of the next round: those of the call, with what the
// client answered.
func (s *Session) answers(ctx context.Context, r Request, result []byte) ([]byte, error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)() // nobody would take the answer
	responses := []byte("{")
	for key, request := range rawjson.Members(rawjson.Get(result, "inputRequests")) {
		method, _ := rawjson.String(rawjson.Get(request, "method"))
		if !forClients[method] {
			return nil, fmt.Errorf("the upstream asks for %q, which clients do not know", method)
		}
		params := rawjson.Get(request, "params")
		if method == "elicitation/create" {
			s.elicits(params, r.Client)
		}
		answer, err := r.Client.Request(asking, method, params)
		switch {
		case s.ctx.Err() != nil:
			return nil, s.lost(s.err)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		}
		responses = rawjson.AppendMember(responses, key, answer)
	}
	params := r.Params
	if len(params) == 0 {
		params = []byte("{}")
	}
	params = rawjson.With(params, "inputResponses", append(responses, '}'))
	return rawjson.With(params, "requestState", rawjson.Get(result, "requestState")), nil
}
