package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	ctx, done, err := s.note(m.ID)
	if err != nil {
		s.reply(m.ID, nil, err)
		return
	}
	release := s.hold(client)
	go func() {
		defer done()
		defer func() { release() }()
		for {
			result, err := client.Request(ctx, m.Method, m.Params)
			if errors.Is(err, ErrCallOver) { // then it was another's question
				var next Client
				if next, err = s.addressee(of); err == nil && next != client {
					release()
					client, release = next, s.hold(next)
					continue
				}
				err = cmp.Or(err, ErrCallOver)
			}
			s.reply(m.ID, result, err)
			return
		}
	}()
}

// note keeps what the upstream asks until done, so that it can be withdrawn.
func (s *Session) note(id []byte) (_ context.Context, done func(), err error) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) >= maxAsked {
		cancel()
		return nil, nil, fmt.Errorf("refused: %d requests to clients are waiting already", maxAsked)
	}
	s.asked[string(id)] = cancel
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asked, string(id))
	}, nil
}

// hold notes that the upstream waits for a client, during which the client's
// calls do not run into the limit on idle calls: any of them may be the cause.
func (s *Session) hold(client Client) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held []*call
	for _, c := range s.pending {
		if c.request.Client != nil && c.request.Client.ID() == client.ID() {
			c.held++
			held = append(held, c)
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, c := range held {
			c.held--
			c.moved = time.Now() // from here on it is the upstream that takes its time
		}
	}
}

// withdrawn ends a request that the upstream no longer wants answered.
func (s *Session) withdrawn(params []byte) {
	s.mu.Lock()
	cancel := s.asked[string(rawjson.Get(params, "requestId"))]
	s.mu.Unlock()
	if cancel != nil {
		cancel()
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

// addressee is the client that what the upstream says of its own accord must be
// for: the one whose call the link says it is of, or whose calls are in flight, or
// the only one there is. The error says why that is not certain.
func (s *Session) addressee(of []byte) (Client, error) {
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
	several := fmt.Errorf(`several clients have calls in flight on the shared session of server %q; set "isolation": "client" for it`, s.server)
	busy, asked := s.latest(isFree), s.latest(isAsked)
	switch {
	case busy.several || busy.call == nil && asked.several:
		return nil, several
	case busy.call != nil:
		return busy.call.request.Client, nil
	case asked.call != nil:
		return asked.call.request.Client, nil
	}
	if only := s.peer.only(); only != nil {
		return only, nil
	}
	return nil, fmt.Errorf(`no client has a call in flight on the shared session of server %q; set "isolation": "client" for it`, s.server)
}

// latest is the last of the calls in flight that are so, and whether they are of
// several clients. The mutex is held.
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
