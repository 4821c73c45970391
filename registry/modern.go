package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	meta   []byte        // members of every request's _meta
	listen chan struct{} // capacity 1: what is wanted has changed

	mu     sync.Mutex
	wanted int           // how often it has
	heard  int           // up to which of these the upstream listens
	news   chan struct{} // closed when that changes
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
	session.modern = &modern{meta: modernMeta(o.Version), listen: make(chan struct{}, 1), news: make(chan struct{})}
	go session.run()
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
	go session.listen(rawjson.Get(hello, "capabilities"))
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
		return []byte("{}"), s.listening(ctx, s.modern.relisten())
	case "resources/unsubscribe":
		s.modern.relisten()
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

// listen keeps one subscriptions/listen open for the lists that can change and
// the resources that clients want to hear of.
func (s *Session) listen(capabilities []byte) {
	broke := false
	for s.ctx.Err() == nil {
		wanted := s.modern.latest() // before it is looked what that is
		var filter []byte
		var missed []string // lists that may have changed while nobody listened
		for _, kind := range []string{"tools", "prompts", "resources"} {
			if string(rawjson.Get(rawjson.Get(capabilities, kind), "listChanged")) == "true" {
				if broke {
					missed = append(missed, "notifications/"+kind+"/list_changed")
				}
				filter = rawjson.With(filter, kind+"ListChanged", []byte("true"))
			}
		}
		if uris := s.peer.subscribed(); len(uris) > 0 {
			list := []byte("[")
			for i, uri := range uris {
				if i > 0 {
					list = append(list, ',')
				}
				list = rawjson.AppendString(list, uri)
			}
			filter = rawjson.With(filter, "resourceSubscriptions", append(list, ']'))
		}
		broke = s.listenFor(filter, wanted, missed)
	}
}

// listenFor listens until what is wanted changes, or the session ends, or it broke:
// then lists may have changed that nobody told of. A nil filter is for nothing: the upstream is not asked.
func (s *Session) listenFor(filter []byte, wanted int, missed []string) (broke bool) {
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	listens := func() { s.modern.listens(wanted) }
	var isHeard atomic.Bool
	heard := func() {
		listens()
		if !isHeard.Swap(true) {
			for _, method := range missed {
				s.peer.notified(method, nil, nil)
			}
		}
	}
	var asking sync.WaitGroup
	defer asking.Wait() // the end of this one is told before the next begins
	defer cancel()
	if filter != nil {
		asking.Go(func() {
			_, err := s.inRounds(ctx, Request{Method: "subscriptions/listen", Params: rawjson.With([]byte("{}"), "notifications", filter), acknowledged: heard})
			ended <- err
		})
	} else {
		listens()
	}
	select {
	case <-s.modern.listen:
	case <-s.ctx.Done():
	case err := <-ended:
		s.log.Debug().Err(err).Msg("subscriptions/listen ended")
		listens() // as far as it ever will
		select {  // an upstream that does not know it is not asked in a loop
		case <-s.modern.listen:
		case <-time.After(relistenPause):
		case <-s.ctx.Done():
		}
		return isHeard.Load() || len(missed) > 0
	}
	return len(missed) > 0 && !isHeard.Load() // then it is still to be looked for
}

// relistenPause keeps a broken subscriptions/listen from being opened in a loop.
const relistenPause = 10 * time.Second

// relisten has the upstream listen for what is wanted now. It returns what listens
// will say then.
func (m *modern) relisten() (wanted int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted++
	select {
	case m.listen <- struct{}{}:
	default:
	}
	return m.wanted
}

// latest is what relisten has returned last, which is then taken care of.
func (m *modern) latest() (wanted int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.listen:
	default:
	}
	return m.wanted
}

// listens notes that the upstream listens for what was wanted.
func (m *modern) listens(wanted int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heard = max(m.heard, wanted)
	close(m.news)
	m.news = make(chan struct{})
}

// listenTime is what an upstream gets to say that it listens: it must, but may not.
const listenTime = 5 * time.Second

// listening waits until the upstream listens: a client that is told so may change
// what it wants to hear of at once.
func (s *Session) listening(ctx context.Context, wanted int) error {
	patience := time.NewTimer(listenTime)
	defer patience.Stop()
	for m := s.modern; ; {
		m.mu.Lock()
		heard, news := m.heard, m.news
		m.mu.Unlock()
		if heard >= wanted {
			return nil
		}
		select {
		case <-news:
		case <-patience.C:
			return nil
		case <-s.ctx.Done():
			return errOver // the next session listens for it, too
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// acknowledged takes what an upstream says when it listens, with the id of the
// request on whose stream it came, if that is known.
func (s *Session) acknowledged(params, of []byte) {
	if id := rawjson.Get(rawjson.Get(params, "_meta"), mcp.MetaKeySubscriptionID); id != nil {
		of = id
	}
	if c := s.waiting(of); c != nil && c.request.acknowledged != nil {
		c.request.acknowledged()
	}
}
