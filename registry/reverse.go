package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// Client is who an upstream's own requests and notifications go to: a client of
// a front, by the stream of the call they belong to.
type Client interface {
	// ID tells clients apart.
	ID() string
	// Owner is whom things are kept for between calls: the ID, but for a client
	// without a session, which is another one with each call.
	Owner() string
	// Request asks the client and waits for its answer.
	Request(ctx context.Context, method string, params []byte) (result []byte, err error)
	// Notify tells the client something. It never waits.
	Notify(method string, params []byte)
}

// ErrCallOver is returned by a Client that can only be asked during its call, when
// that is over.
var ErrCallOver = errors.New("the call is over")

// forClients are the methods an upstream may ask a client.
var forClients = map[string]bool{
	"sampling/createMessage": true,
	"elicitation/create":     true,
	"roots/list":             true,
}

// maxAsked bounds what an upstream may ask at a time.
const maxAsked = 100

// asks takes a request of the upstream. What is for a client is asked there, by a
// goroutine of its own, since a person may have to think about it.
func (s *Session) asks(m jsonrpc.Message, of []byte) {
	switch {
	case m.Method == "ping":
		s.reply(m.ID, []byte("{}"), nil)
		return
	case !forClients[m.Method]:
		s.reply(m.ID, nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method '%s' not found", m.Method))
		return
	}
	client, err := s.addressee(of)
	if err != nil {
		s.reply(m.ID, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s was refused: %v", m.Method, err))
		return
	}
	if m.Method == "elicitation/create" {
		s.elicits(m.Params, client)
	}
	q, err := s.note(m.ID)
	if err != nil {
		s.reply(m.ID, nil, err)
		return
	}
	s.hold(q, client)
	s.tasks.Go(func() { s.ask(m, of, q, client) })
}

// ask asks the client and replies to the upstream.
func (s *Session) ask(m jsonrpc.Message, of []byte, q *question, client Client) {
	defer s.forget(m.ID, q)
	for {
		result, err := client.Request(q.ctx, m.Method, m.Params)
		if errors.Is(err, ErrCallOver) { // the call ended first; look for another owner
			var next Client
			if next, err = s.addressee(of); err == nil && next != client && s.mayOwn(q, next) {
				client = next
				s.hold(q, client)
				continue
			}
			err = cmp.Or(err, ErrCallOver)
		}
		s.reply(m.ID, result, err)
		return
	}
}

// mayOwn reports whether a client had a call in flight when the upstream asked, and
// still has it.
func (s *Session) mayOwn(q *question, client Client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(q.causes, func(c *call) bool {
		return !c.over && c.request.Client.ID() == client.ID()
	})
}

// question is what the upstream asks of a client.
type question struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	// Guarded by the session's mutex.
	causes []*call // calls that it may be of, and were not given up
	held   []*call // calls of the client that is asked
}

// note keeps what the upstream asks until it is forgotten.
func (s *Session) note(id []byte) (*question, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) >= maxAsked {
		return nil, fmt.Errorf("refused: %d requests to clients are waiting already", maxAsked)
	}
	q := &question{}
	q.ctx, q.cancel = context.WithCancelCause(s.ctx)
	for _, c := range s.pending {
		if c.request.Client != nil {
			q.causes = append(q.causes, c)
		}
	}
	s.asked[string(id)] = q
	return q, nil
}

func (s *Session) forget(id []byte, q *question) {
	q.cancel(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	q.release()
	if s.asked[string(id)] == q {
		delete(s.asked, string(id))
	}
}

// hold notes that the upstream waits for a client, during which the client's
// calls do not run into the limit on idle calls.
func (s *Session) hold(q *question, client Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.release()
	for _, c := range s.pending {
		if c.request.Client != nil && c.request.Client.ID() == client.ID() {
			c.held++
			q.held = append(q.held, c)
		}
	}
}

// release ends that: from here on it is the upstream that takes its time.
func (q *question) release() {
	for _, c := range q.held {
		c.held--
		c.moved = time.Now()
	}
	q.held = nil
}

// giveUp withdraws what can only be asked for calls that nobody waits for any
// more: a dialog would stand there for nothing.
func (s *Session) giveUp(c *call, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.asked {
		i := slices.Index(q.causes, c)
		if i < 0 {
			continue
		}
		if q.causes = slices.Delete(q.causes, i, i+1); len(q.causes) == 0 {
			q.cancel(reason)
		}
	}
}

// withdrawn ends a request that the upstream no longer wants answered.
func (s *Session) withdrawn(params []byte) {
	reason, _ := rawjson.String(rawjson.Get(params, "reason"))
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.asked[string(rawjson.Get(params, "requestId"))]; q != nil {
		q.cancel(errors.New(cmp.Or(s.redact(reason), "the server does not ask any more")))
	}
}

func (s *Session) reply(id, result []byte, err error) {
	message := jsonrpc.AppendResult(nil, id, result)
	if err != nil {
		e := &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}
		errors.As(err, &e)
		message = jsonrpc.AppendError(nil, id, e)
	}
	if err := s.link.Send(message); err != nil {
		s.log.Debug().Err(err).Msg("could not answer the upstream")
	}
}

// addressee picks the client that should receive an upstream-initiated message:
// the client whose call's stream carried it (of), the only client with calls in
// flight, or the only client there is. The error says why that is not certain.
func (s *Session) addressee(of []byte) (Client, error) {
	only := s.peer.only()
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, err := strconv.ParseInt(string(of), 10, 64); err == nil {
		switch c := s.pending[id]; {
		case c == nil:
			return nil, errors.New("the call that it is of is over")
		case c.request.Client != nil:
			return c.request.Client, nil
		}
	}
	busy, asked := s.latest(isFree), s.latest(isAsked)
	if busy.several || busy.call == nil && asked.several {
		return nil, s.uncertain("several clients have calls in flight on")
	}
	if busy.call == nil {
		busy = asked
	}
	if busy.call != nil {
		client := busy.call.request.Client
		if s.callers.others(s.peer.caller(client)) {
			return nil, s.uncertain("another client has abandoned a call on")
		}
		return client, nil
	}
	if only != nil && s.callers.only(s.peer.caller(only)) {
		return only, nil
	}
	return nil, s.uncertain("no client has a call in flight on")
}

// uncertain is the error for a message that cannot be assigned to one client.
func (s *Session) uncertain(why string) error {
	return fmt.Errorf(`%s the shared session of server %q; set "isolation": "client" for it`, why, s.server)
}

// recipients returns the clients that a notification concerns.
func (s *Session) recipients(m jsonrpc.Message, of []byte) []Client {
	if m.Method == elicitationComplete {
		if to := s.sentTo(m.Params); to != nil {
			return []Client{to}
		}
	}
	client, err := s.addressee(of)
	switch {
	case err == nil:
		return []Client{client}
	case m.Method == "notifications/message":
		return s.busy()
	}
	return nil
}

// busy returns the clients with calls in flight, each by the stream of its newest
// call.
func (s *Session) busy() []Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := map[string]*call{}
	for _, c := range s.pending {
		if c.request.Client == nil {
			continue
		}
		if n := newest[c.request.Client.ID()]; n == nil || n.id < c.id {
			newest[c.request.Client.ID()] = c
		}
	}
	clients := make([]Client, 0, len(newest))
	for _, c := range newest {
		clients = append(clients, c.request.Client)
	}
	return clients
}

// latest returns the newest call in flight for which is holds, and whether such
// calls belong to several clients. The caller holds s.mu.
func (s *Session) latest(is func(c *call) bool) (last struct {
	call    *call
	several bool
}) {
	for _, c := range s.pending {
		if c.request.Client == nil || !is(c) {
			continue
		}
		last.several = last.several || last.call != nil && last.call.request.Client.ID() != c.request.Client.ID()
		if last.call == nil || last.call.id < c.id {
			last.call = c
		}
	}
	return last
}

// isAsked reports whether a call waits for its client, which has no session and
// comes back with the answer when it has one. It will hardly ask more meanwhile,
// and that may take minutes.
func isAsked(c *call) bool {
	return c.held > 0 && c.request.Client.Owner() != c.request.Client.ID()
}

func isFree(c *call) bool { return !isAsked(c) }
