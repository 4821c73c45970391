package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/plain"
	"mcpx/internal/tasks"
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
	tasks  tasks.Group            // what runs for the session; Close waits for it
	level  atomic.Pointer[string] // the log level it was told last

	leveling chan struct{} // holds one while it is told a log level

	mu      sync.Mutex
	lastID  int64
	pending map[int64]*call
	asked   map[string]*question // what the upstream asks, by its id
	err     error                // why it is over

	callers  callers
	elicited elicited
}

// peer takes what the upstream says of its own accord. Its methods are called by
// the goroutine that reads, and never wait.
type peer interface {
	// notified takes a notification and the clients it concerns: one if that is
	// certain, and for a log message otherwise every client with a call in flight.
	notified(method string, params []byte, to []Client)
	// caller identifies the client of a call. Calls with the same caller may
	// receive each other's requests.
	caller(c Client) string
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
	// Receive returns the next message and, if known, the ID of the call whose
	// stream carried it. An *endedCall error ends one call; any other error ends
	// the link.
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
		if e := (*endedCall)(nil); errors.As(err, &e) {
			s.ended(e)
			continue
		}
		if err != nil {
			s.end(err)
			return
		}
		s.accept(line, of)
	}
}

// accept takes one message.
func (s *Session) accept(line, of []byte) {
	defer s.guard()
	m, err := jsonrpc.Parse(line)
	if err != nil {
		s.malformed(m.ID, line, err)
		return
	}
	s.receive(m, line, of)
}

// guard, when deferred, keeps a panic from ending the process: it costs one message
// or one call.
func (s *Session) guard() {
	if p := recover(); p != nil {
		s.log.Error().Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("panic in the handling of a message")
	}
}

// endedCall ends one call without an answer; the link lives on.
type endedCall struct {
	id  []byte
	err error // what the call returns; errOver if it was never sent
}

func (e *endedCall) Error() string { return e.err.Error() }

// ended ends a call that its link could not finish.
func (s *Session) ended(e *endedCall) {
	c := s.waiting(e.id)
	if c == nil {
		return
	}
	end := s.drop
	var u *Unanswered
	if errors.Is(e.err, errOver) || errors.As(e.err, &u) && !u.Unknown {
		end = s.take
	}
	if end(c) {
		s.complete(c, nil, nil, e.err)
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
		s.finish(c, nil, nil, &Unanswered{Server: s.server, Reason: "it answered with a message that is not JSON-RPC: " + jsonrpc.Text(err)})
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
			s.late(m.ID)
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
		s.peer.notified(m.Method, m.Params, s.recipients(m, of))
	}
}

// Notify sends a notification.
func (s *Session) Notify(method string, params []byte) error {
	return s.link.Send(jsonrpc.AppendNotification(nil, method, params))
}

// Close ends the session and what it runs on. It returns when nothing of it runs
// any more.
func (s *Session) Close() {
	s.link.Close()
	s.tasks.Close()
}
