package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mcpx/config"
	"mcpx/internal/logging"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/lists"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Go sends a request to an upstream and never waits: if the upstream session is not open
// yet, a goroutine waits for it. done gets the end once: the result, or an error of
// Session.Go or *live.Unavailable. A request that was sent is never sent again, with one
// exception: if the upstream has forgotten the session, it did not run the request. Then Go
// sends it once more, in a new session.
func (r *Registry) Go(ctx context.Context, server string, q upstream.Request, done rpc.Done) {
	if r.Tracer == nil {
		r.send(ctx, server, q, done)
		return
	}
	traced, span := r.startSpan(ctx, server, q)
	r.send(ctx, server, traced, func(result rpc.Result, err error) {
		endSpan(ctx, span, result.JSON, err)
		done(result, err)
	})
}

// send is Go without a span.
func (r *Registry) send(ctx context.Context, server string, q upstream.Request, done rpc.Done) {
	s := r.sessionNow(server, q.Client)
	if s == nil || s.MustPrepare(q.Client) {
		go r.callInBackground(ctx, server, q, failedTry{}, done)
		return
	}
	err := s.Go(ctx, q, r.limits(server), func(result rpc.Result, err error) {
		if errors.Is(err, rpc.ErrClosed) { // the link accepted the request, but it was not sent, or the upstream did not run it
			go r.callInBackground(ctx, server, q, failedTry{s, err}, done)
			return
		}
		s.NoteEnd(q, err)
		done(result, err)
	})
	if err != nil { // not sent
		go r.callInBackground(ctx, server, q, failedTry{}, done)
	}
}

// callInBackground makes a call with callWhenReady and passes its end to done. A panic ends only
// this call.
func (r *Registry) callInBackground(ctx context.Context, server string, q upstream.Request, last failedTry, done rpc.Done) {
	isDone := false
	defer func() {
		if p := recover(); p != nil {
			logging.Panic(r.log.Error().Str("server", server), p).Msg("panic in a call")
			if !isDone {
				done(rpc.Result{}, fmt.Errorf("internal error in a call to %s", server))
			}
		}
	}()
	_, result, err := r.callWhenReady(ctx, server, q, last)
	isDone = true
	done(result, err)
}

// Call is Go for callers that wait.
func (r *Registry) Call(ctx context.Context, server string, q upstream.Request) ([]byte, error) {
	q, span := r.startSpan(ctx, server, q)
	_, result, err := r.callWhenReady(ctx, server, q, failedTry{})
	endSpan(ctx, span, result.JSON, err)
	return result.Take(), err
}

// maxTries is how many sessions a call tries that end before they can send it: one, and those
// that replace it at once.
const maxTries = 1 + live.MaxReplacements

// failedTry is an attempt to make a call that the upstream did not run. The zero failedTry means
// that there was no attempt.
type failedTry struct {
	session *live.Session
	err     error // an rpc.ErrClosed
}

// callWhenReady makes a call as soon as there is a session for it, and returns that session.
// After a failed try it waits for the next session.
func (r *Registry) callWhenReady(ctx context.Context, server string, q upstream.Request, last failedTry) (s *live.Session, result rpc.Result, err error) {
	limits, begun := r.limits(server), q.Begun
	_, isForgotten := errors.AsType[*upstream.Forgotten](last.err)
	if isForgotten { // the call has used a part of its time, and waits for a start only now
		var cancel context.CancelFunc
		ctx, cancel = totalLimit(ctx, server, limits.Total, begun)
		defer cancel()
		limits.Total, begun = 0, time.Time{}
	}
	starting, cancel := r.startLimit(ctx, server, begun)
	defer cancel()
	v := r.forCalls(q.Client)
	for tries := 0; ; tries++ {
		if err := r.waitForEnd(starting, last.session); err != nil {
			return nil, rpc.Result{}, v.explain(server, err)
		}
		if u := v.current(server); u != nil && tries >= maxTries && u.State != live.Ready { // it ends again and again
			return nil, rpc.Result{}, u.Unavailable()
		}
		if s, err = r.sessionFor(starting, server, q.Client); err != nil {
			return nil, rpc.Result{}, v.explain(server, err)
		}
		if s.Supervisor().Upstream().AwaitsList() { // the call was checked against an earlier list
			if _, err := v.Relisted(starting, server); err != nil {
				return nil, rpc.Result{}, v.explain(server, err)
			}
		}
		if err := hidden(s, q); err != nil {
			return nil, rpc.Result{}, err
		}
		if isForgotten && !r.offers(server, q) {
			return nil, rpc.Result{}, &upstream.Unanswered{Server: server, Reason: "the server has forgotten the session, and the new session does not offer this tool; the call was not made. Use inspect to see the tools of the server"}
		}
		result, err = s.Call(ctx, q, limits)
		again, ok := errors.AsType[*upstream.Forgotten](err)
		switch {
		case ok && isForgotten:
			return nil, rpc.Result{}, &upstream.Unanswered{Server: server, Reason: again.Reason + ", and then the new session, too; the call was not made. Try again later"}
		case ok:
			return r.callWhenReady(ctx, server, q, failedTry{s, err})
		case !errors.Is(err, rpc.ErrClosed):
			s.NoteEnd(q, err)
			return s, result, err
		}
		last = failedTry{s, err}
	}
}

// namedKinds are the kinds of items that requests name, by method.
var namedKinds = map[string]lists.Kind{"tools/call": lists.OfTools, "prompts/get": lists.OfPrompts}

// hidden returns the error for a request whose item a view hides. The item was checked before,
// but maybe in the lists of a session that has ended since then.
func hidden(s *live.Session, q upstream.Request) error {
	u := s.Supervisor().Upstream()
	k, isNamed := namedKinds[q.Method]
	if !isNamed || len(u.Hidden(k)) == 0 {
		return nil
	}
	name, _ := rawjson.String(rawjson.Get(q.Params, "name"))
	if why := u.WhyHidden(k, name); why != "" {
		return &live.Unavailable{Server: u.Name, Reason: why}
	}
	return nil
}

// offers reports whether the client may still use the tool of a request. Since the call was
// checked, the tool may have gone, or may be hidden.
func (r *Registry) offers(server string, q upstream.Request) bool {
	if q.Method != "tools/call" {
		return true
	}
	name, _ := rawjson.String(rawjson.Get(q.Params, "name"))
	u := r.For(q.Client).Catalog().Upstream(server)
	return u != nil && u.Tool(name) != nil
}

// totalLimit returns a context that ends when a call has reached its limit. The call began at
// begun, or now if that is zero. A limit of 0 means no limit.
func totalLimit(ctx context.Context, server string, limit time.Duration, begun time.Time) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return ctx, func() {}
	}
	if begun.IsZero() {
		begun = time.Now()
	}
	return context.WithDeadlineCause(ctx, begun.Add(limit), &upstream.Timeout{Server: server, Key: "max_timeout", Limit: limit})
}

// waitForEnd waits until sessionFor no longer returns s, which is ending. It does not
// wait if s is nil.
func (r *Registry) waitForEnd(ctx context.Context, s *live.Session) error {
	if s == nil {
		return nil
	}
	ended := s.Done()
	if u := s.Supervisor().Upstream(); u.Session == s && u.State == live.Ready { // its end is not published yet
		ended = u.Changed()
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// limits returns the time limits for a request to a server.
func (r *Registry) limits(server string) upstream.Limits {
	if u := r.Catalog().Upstream(server); u != nil {
		return upstream.Limits{Idle: u.Config.Timeout, Total: u.Config.MaxTimeout}
	}
	return upstream.Limits{}
}

// MaxTimeout returns how long a call to a server may take in total.
func (r *Registry) MaxTimeout(server string) time.Duration { return r.limits(server).Total }

// sessionKey identifies an upstream session: a server's shared session, a client's own, or
// a caller's own.
type sessionKey struct {
	server string
	owner  string // a client or caller; empty for the shared session
}

// keyOf returns the key of the session for a client's requests. "isolation" in the config
// decides whether that is the shared one. A nil client is mcpx itself.
func keyOf(u *config.Upstream, c upstream.Client) sessionKey {
	switch {
	case c == nil:
	case u.Isolation == config.PerClient:
		return sessionKey{u.Name, c.Owner()}
	case u.Isolation == config.PerUser:
		return sessionKey{u.Name, callerKey(u, c)}
	}
	return sessionKey{server: u.Name}
}

// keyOfSession returns the key of a session.
func keyOfSession(s *live.Session) sessionKey {
	return sessionKey{s.Config.Name, s.Supervisor().Owner()}
}

// keyFor is keyOf for a server by its name.
func (r *Registry) keyFor(server string, c upstream.Client) sessionKey {
	if u := r.Catalog().Upstream(server); u != nil {
		return keyOf(u.Config, c)
	}
	return sessionKey{server: server}
}

// sessionNow returns the session for a client's request if it can be used without
// waiting; nil otherwise.
func (r *Registry) sessionNow(server string, c upstream.Client) *live.Session {
	v := r.forCalls(c)
	if u := v.current(server); u != nil && u.State == live.Ready && v.serves(u) {
		return u.Session
	}
	return nil
}

// sessionFor waits until the session for a client's request is open and returns it. A
// client's own session waits for the shared one only while the upstream's lists are unknown.
func (r *Registry) sessionFor(ctx context.Context, server string, c upstream.Client) (*live.Session, error) {
	if u := r.Catalog().Upstream(server); u != nil && u.Config.Isolation == config.PerClient && !u.IsListed() {
		if _, err := r.For(c).ready(ctx, server); err != nil {
			return nil, err
		}
	}
	u, err := r.forCalls(c).ready(ctx, server)
	if err != nil {
		return nil, err
	}
	return u.Session, nil
}
