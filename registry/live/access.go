package live

import (
	"context"
	"errors"
	"slices"

	"mcpx/internal/rawjson"
	"mcpx/registry/link"
	"mcpx/registry/upstream"
)

// missingAccess says why the upstream refused a call: the sign-in has too little access for it.
// Other calls may work, so the upstream stays ready.
type missingAccess struct {
	failure *link.Failure
	reason  string // says also what a person can do
	subject string // what the call used: see subjectOf

	context.Context // ends when the upstream no longer shows this
	end             context.CancelFunc
}

// Shown returns the upstream as people see it. If a call of a ready upstream lacked access, its
// state is NeedsAccess.
func (u *Upstream) Shown() *Upstream {
	if u.missing == nil || u.State != Ready {
		return u
	}
	shown := *u
	shown.State, shown.Reason, shown.failure = NeedsAccess, u.missing.reason, u.missing.failure
	return &shown
}

// NoteEnd records the end of a client's request. If the request lacked access, people see that
// until a token with that access is stored, or until such a request works.
func (s *Session) NoteEnd(q upstream.Request, err error) {
	shown := s.supervisor
	if shown.client != nil { // clients share the sign-in
		shown = shown.base
	}
	missing := shown.Upstream().missing
	if err == nil {
		if !s.supervisor.hasServed.Load() { // calls that run at the same time need not write
			s.supervisor.hasServed.Store(true)
		}
		if missing != nil && missing.subject == subjectOf(q) {
			shown.setMissing(nil)
		}
		return
	}
	denied, ok := errors.AsType[*Unavailable](err)
	if !ok || denied.failure == nil || denied.failure.Cause != link.CauseAccess {
		return
	}
	if missing != nil && slices.Equal(missing.failure.Scopes, denied.failure.Scopes) {
		return
	}
	shown.log.Warn().Str("reason", denied.Reason).Msg("a call needs more access")
	missing = &missingAccess{failure: denied.failure, reason: denied.Reason, subject: subjectOf(q)}
	missing.Context, missing.end = context.WithCancel(context.Background())
	shown.setMissing(missing)
	if !shown.Account().Has(denied.failure.Scopes) { // otherwise the token has the access already, and waiting for a new token does not help
		s.Background(func() { shown.awaitAccess(s, missing) })
	}
}

// setMissing publishes which access is missing; nil: none. It ends the wait for the access that
// was missing before.
func (s *Supervisor) setMissing(m *missingAccess) {
	s.publish(func(u *Upstream) {
		if u.missing != nil {
			u.missing.end()
		}
		u.missing = m
	})
}

// awaitAccess publishes that no access is missing once a token with that access is stored, by
// this process or another one. It stops waiting when the session ends, or when
// other access is missing.
func (s *Supervisor) awaitAccess(session *Session, missing *missingAccess) {
	ctx, cancel := context.WithCancel(session.Context())
	defer cancel()
	defer context.AfterFunc(missing, cancel)()
	if s.Account().Wait(ctx, missing.failure.Scopes) != nil {
		return
	}
	s.publish(func(u *Upstream) {
		if u.missing == missing {
			u.missing = nil
		}
	})
}

// subjectBytes bounds the subject of a request.
const subjectBytes = 1 << 10

// subjectOf returns what a request uses: its method with the tool, prompt or resource.
func subjectOf(q upstream.Request) string {
	subject := q.Method
	for _, key := range []string{"name", "uri"} {
		value, _ := rawjson.String(rawjson.Get(q.Params, key))
		subject += "\n" + value
	}
	return subject[:min(len(subject), subjectBytes)]
}
