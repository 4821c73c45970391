package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mcpx/internal/logging"
	"mcpx/internal/rpc"
	"mcpx/internal/upstream"
	"mcpx/registry/live"
)

// Send sends a request to an upstream. It never waits: if the session is not open yet, a
// goroutine waits for it. done gets the end once: the result, or an error of Session.Send
// or *live.Unavailable. A request that was sent is never sent again.
func (r *Registry) Send(ctx context.Context, server string, q upstream.Request, done rpc.Done) {
	if r.tracer == nil {
		r.send(ctx, server, q, done)
		return
	}
	traced, span := r.startSpan(ctx, server, q)
	r.send(ctx, server, traced, func(result, line []byte, err error) {
		endSpan(ctx, span, result, err)
		done(result, line, err)
	})
}

// send is Send without a span.
func (r *Registry) send(ctx context.Context, server string, q upstream.Request, done rpc.Done) {
	s := r.sessionNow(server, q.Client)
	if s == nil || s.IsModern() || s.MustPrepare(q.Client) {
		go r.callInBackground(ctx, server, q, nil, done)
		return
	}
	err := s.Send(ctx, q, r.limits(server), func(result, line []byte, err error) {
		if errors.Is(err, rpc.ErrClosed) { // the link accepted the request, but could not send it
			go r.callInBackground(ctx, server, q, s, done)
			return
		}
		done(result, line, err)
	})
	if err != nil { // not sent
		go r.callInBackground(ctx, server, q, nil, done)
	}
}

// callInBackground makes a call with callWhenReady and passes its end to done. A panic ends only
// this call.
func (r *Registry) callInBackground(ctx context.Context, server string, q upstream.Request, ending *live.Session, done rpc.Done) {
	isDone := false
	defer func() {
		if p := recover(); p != nil {
			logging.Panic(r.log.Error().Str("server", server), p).Msg("panic in a call")
			if !isDone {
				done(nil, nil, fmt.Errorf("internal error in a call to %s", server))
			}
		}
	}()
	_, result, err := r.callWhenReady(ctx, server, q, ending)
	isDone = true
	done(result, nil, err)
}

// Call is Send for callers that wait.
func (r *Registry) Call(ctx context.Context, server string, q upstream.Request) ([]byte, error) {
	q, span := r.startSpan(ctx, server, q)
	_, result, err := r.callWhenReady(ctx, server, q, nil)
	endSpan(ctx, span, result, err)
	return result, err
}

// maxTries is how many sessions a call tries that end before they can send it.
const maxTries = 2

// callWhenReady makes a call as soon as there is a session for it, and returns that session.
// ending is the session that could not send the request, if there is one: callWhenReady then
// waits for the next session.
func (r *Registry) callWhenReady(ctx context.Context, server string, q upstream.Request, ending *live.Session) (s *live.Session, result []byte, err error) {
	starting, cancel := r.startLimit(ctx, server, q.Begun)
	defer cancel()
	v := r.forCalls(q.Client)
	for tries := 0; ; tries++ {
		if err := r.waitForEnd(starting, ending); err != nil {
			return nil, nil, v.explain(server, err)
		}
		if u := v.current(server); u != nil && tries >= maxTries && u.State != live.Ready { // it ends again and again
			return nil, nil, u.Unavailable()
		}
		if s, err = r.sessionFor(starting, server, q.Client); err != nil {
			return nil, nil, v.explain(server, err)
		}
		result, err = s.Call(ctx, q, r.limits(server))
		if !errors.Is(err, rpc.ErrClosed) {
			return s, result, err
		}
		ending = s
	}
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
