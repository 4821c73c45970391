package upstream

import (
	"cmp"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/rs/zerolog"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/link"
)

// Run handles what the upstream sends until the link ends.
func (s *Session) Run() { s.conn.Close(s.Link.Run(s.receive)) }

// receive handles a message of the link, or an error that does not end it. It may be
// called concurrently.
func (s *Session) receive(d link.Delivery) {
	if d.Err == nil {
		s.Host.Record(Received, d.Text)
		s.accept(d.Line, d.CallID)
		return
	}
	if ended, ok := errors.AsType[*link.CallEnd](d.Err); ok {
		s.endCall(ended)
		return
	}
	for _, list := range Listable { // after link.ErrGap, each of them may have changed
		s.Host.Notified(ListChanged(list), nil, nil)
	}
}

// endCall ends a call that the link could not finish.
func (s *Session) endCall(e *link.CallEnd) {
	switch e.Outcome {
	case link.NotSent:
		s.conn.Refuse(e.ID, rpc.ErrClosed)
	case link.Forgotten:
		s.conn.Refuse(e.ID, &Forgotten{Server: s.Config.Name, Reason: e.Reason})
	case link.Refused:
		if e.Denied != nil {
			s.denied(e.ID, e.Denied)
			return
		}
		s.conn.Refuse(e.ID, &Unanswered{Server: s.Config.Name, Reason: e.Reason})
	case link.Unknown:
		s.conn.Abandon(e.ID, &Unanswered{Server: s.Config.Name, Reason: e.Reason, Unknown: true})
	case link.CutOff:
		s.conn.Abandon(e.ID, &Lost{Server: s.Config.Name, Reason: e.Reason})
	}
}

// denied ends a call that was refused because of the sign-in. Without a sign-in the session
// ends; if only some access is missing, it stays open.
func (s *Session) denied(id []byte, f *link.Failure) {
	err := s.Host.Denied(f)
	if err == nil {
		s.conn.Refuse(id, &Unanswered{Server: s.Config.Name, Reason: f.Reason})
		return
	}
	s.conn.Refuse(id, err)
	if f.Cause == link.CauseSignIn {
		s.conn.Close(f)
	}
}

// accept handles one message. callID is the ID of the call whose stream carried it, nil
// if the link does not know it. A panic affects only this message.
func (s *Session) accept(line rpc.Line, callID []byte) {
	defer s.conn.Recover()
	m, err := rpc.Parse(line.Text)
	if err == nil && s.conn.Receive(m, line) {
		return
	}
	defer line.Room.Free()
	switch {
	case err != nil:
		s.malformed(m.ID, line.Text, err)
	case m.IsRequest():
		s.handleRequest(m, callID)
	case m.Method == mcp.MethodNotificationSubscriptionsAcknowledged:
		s.acknowledged(m.Params, callID)
	default:
		s.Host.Notified(m.Method, m.Params, s.recipients(m, callID))
	}
}

// malformed handles a message that is not JSON-RPC. If it has the ID of a call, the call
// fails.
func (s *Session) malformed(id, line []byte, err error) {
	s.warned.Do(func() {
		s.Log.Warn().Err(err).Msg("the server sends messages that are not JSON-RPC; they are skipped")
	})
	s.Log.Debug().Func(func(e *zerolog.Event) { e.Str("text", link.Excerpt(s.Host.Redact, line)) }).Err(err).Msg("skipped a message")
	s.conn.Refuse(id, &Unanswered{Server: s.Config.Name, Reason: "it answered with a message that is not JSON-RPC: " + rpc.Text(err)})
}

// Result implements rpc.Handler.
func (s *Session) Result(c *rpc.Call, m rpc.Message) ([]byte, error) {
	if m.Error != nil {
		err := s.ownError(m.Error)
		s.rememberURLs(err, clientOf(c))
		return nil, err
	}
	if rawjson.Kind(m.Result) != '{' { // no client could use it
		return nil, &Unanswered{Server: s.Config.Name, Reason: "it answered " + c.Method + " with a result that is not an object"}
	}
	return m.Result, nil
}

// ownError returns the upstream's own error, redacted: servers repeat the key that
// they refuse, and errors are shown and logged.
func (s *Session) ownError(raw []byte) *rpc.Error {
	e := rpc.ParseError(raw)
	e.Message = s.Host.Redact(e.Message)
	e.Data = redactJSON(s.Host.Redact, e.Data)
	return e
}

// TimedOut implements rpc.Handler.
func (s *Session) TimedOut(c *rpc.Call, l rpc.Limit) error {
	if l == rpc.TotalLimit {
		return &Timeout{Server: s.Config.Name, Key: "max_timeout", Limit: c.MaxTimeout}
	}
	return &Timeout{Server: s.Config.Name, Key: "timeout", Limit: c.Timeout}
}

// Lost implements rpc.Handler.
func (s *Session) Lost(reason error) error {
	e := &Lost{Server: s.Config.Name, Reason: reason.Error()}
	if f, ok := errors.AsType[*link.Failure](reason); ok {
		e.Reason, e.Stderr = f.Reason, f.Stderr
	}
	return e
}

// Canceled implements rpc.Handler.
func (s *Session) Canceled(reason string) error {
	return errors.New(cmp.Or(s.Host.Redact(reason), "the server has canceled its request"))
}

// redactJSON returns any JSON value redacted, keys included.
func redactJSON(redact func(text string) string, value []byte) []byte {
	if text := string(value); redact(text) == text {
		return value
	}
	return rawjson.Rewrite(value, redact, func(_ []string, text string) string { return redact(text) })
}
