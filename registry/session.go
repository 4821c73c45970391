package registry

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/plain"
)

// Session is a live connection to an upstream. It carries any number of calls
// at a time: each has an id of mcpx's own, and its parameters and its result
// pass as bytes.
type Session struct {
	server string
	redact func(text string) string // hides the upstream's secrets
	link   link
	log    zerolog.Logger
	broken sync.Once // warns of the first message that is none
	peer   peer
	modern *modern         // of an upstream that speaks 2026-07-28; nil for all others
	ctx    context.Context // ends with the session
	cancel context.CancelFunc
	level  atomic.Pointer[string] // the log level it was told last

	leveling chan struct{} // holds one while it is told a log level

	mu      sync.Mutex
	lastID  int64
	pending map[int64]*call
	asked   map[string]*question // what the upstream asks, by its id
	err     error                // why it is over

	elicited elicited
}

// peer takes what the upstream says of its own accord. Its methods are called by
// the goroutine that reads, and never wait.
type peer interface {
	// notified takes a notification. from is the client it must be for, nil if
	// that is not certain.
	notified(method string, params []byte, from Client)
	// only is the one client there is, nil if there are none or several.
	only() Client
	// subscribed are the resources that clients want to hear of.
	subscribed() []string
	// level is the log level that clients want, empty if none has said.
	level() string
}

// link carries whole JSON-RPC messages to and from one upstream.
type link interface {
	// Send queues a message; it never waits for the upstream to read. It fails
	// with errOver when the connection has ended.
	Send(message []byte) error
	// Receive waits for the next message, and says by the id of which call it is,
	// nil if the link does not know. Its error says why there are no more, but for
	// a *brokenCall, which is the end of one call alone.
	Receive() (message, of []byte, err error)
	// Close ends the connection and returns when nothing of it is left. It is
	// safe to call twice, and makes a Receive under way return.
	Close()
}

func newSession(c *config.Upstream, l link, log zerolog.Logger, p peer) *Session {
	ctx, cancel := context.WithCancel(context.Background())
	return &Session{
		ctx:      ctx,
		cancel:   cancel,
		server:   c.Name,
		redact:   c.Redact,
		link:     l,
		log:      log,
		peer:     p,
		leveling: make(chan struct{}, 1),
		pending:  map[int64]*call{},
		asked:    map[string]*question{},
	}
}

// run reads what the upstream sends until the link ends.
func (s *Session) run() {
	for {
		line, of, err := s.link.Receive()
		if b := (*brokenCall)(nil); errors.As(err, &b) {
			s.broke(b)
			continue
		}
		if err != nil {
			s.end(err)
			return
		}
		m, err := jsonrpc.Parse(line)
		if err != nil {
			s.malformed(m.ID, line, err)
			continue
		}
		s.receive(m, line, of)
	}
}

// brokenCall is the end of a call whose connection broke, where the session has
// others.
type brokenCall struct {
	id       []byte
	reason   string
	isUnsent bool // the upstream cannot have got it
}

func (e *brokenCall) Error() string { return e.reason }

// broke ends a call whose connection broke.
func (s *Session) broke(b *brokenCall) {
	c := s.waiting(b.id)
	switch {
	case c == nil:
	case b.isUnsent:
		s.finish(c, nil, nil, errOver)
	default:
		s.finish(c, nil, nil, s.lost(b))
	}
}

// malformed takes a message that is no JSON-RPC. If it was the answer to a call,
// the call fails with that, rather than wait for another.
func (s *Session) malformed(id, line []byte, err error) {
	s.broken.Do(func() {
		s.log.Warn().Err(err).Msg("the server sends messages that are not JSON-RPC; they are skipped")
	})
	s.log.Debug().Func(func(e *zerolog.Event) { e.Str("text", excerpt(s.redact, line)) }).Err(err).Msg("skipped a message")
	if c := s.waiting(id); c != nil {
		s.finish(c, nil, nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "it answered with a message that is not JSON-RPC: %v", err))
	}
}

// excerpt is the start of what an upstream wrote, for the log.
func excerpt(redact func(string) string, line []byte) string {
	const most = 200
	return plain.Cut(plain.Line(redact(string(line[:min(len(line), redactBytes)]))), most)
}

// end fails everything that waits, and whatever comes after, with the reason.
func (s *Session) end(err error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = err
	s.cancel()
	waiting := slices.Collect(maps.Values(s.pending))
	s.mu.Unlock()
	for _, c := range waiting {
		s.lose(c)
	}
}

// receive hands a message, and the line it came in, to the call it belongs to,
// which the link may know by its id.
func (s *Session) receive(m jsonrpc.Message, line, of []byte) {
	switch {
	case m.IsResponse():
		c := s.waiting(m.ID)
		if c == nil {
			s.log.Debug().Bytes("id", m.ID).Msg("dropped an answer that nothing waits for")
			return
		}
		result, err := s.resultOf(c, m)
		if err != nil {
			line = nil // parts of it may be in the error
		}
		s.finish(c, result, line, err)
	case m.IsRequest():
		s.asks(m, of)
	case m.Method == "notifications/progress":
		s.progress(m.Params)
	case m.Method == "notifications/cancelled":
		s.withdrawn(m.Params)
	case m.Method == mcp.MethodNotificationSubscriptionsAcknowledged:
		s.acknowledged(m.Params, of)
	default:
		from, _ := s.addressee(of)
		if m.Method == elicitationComplete {
			if to := s.sentTo(m.Params); to != nil {
				from = to
			}
		}
		s.peer.notified(m.Method, m.Params, from)
	}
}

// Notify sends a notification.
func (s *Session) Notify(method string, params []byte) error {
	return s.link.Send(jsonrpc.AppendNotification(nil, method, params))
}

// Close ends the session and what it runs on.
func (s *Session) Close() { s.link.Close() }
