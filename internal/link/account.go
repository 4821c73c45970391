package link

import (
	"errors"
	"net/http"

	"mcpx/config"
	"mcpx/internal/auth"
)

// Account returns the account that signs in to an upstream for a caller; the caller ""
// stands for everyone. It returns nil if the upstream does not use OAuth: a process, one
// with an Authorization header, or one whose auth.flow is none.
func Account(accounts *auth.Accounts, u *config.Upstream, caller string) *auth.Account {
	if accounts == nil || u.URL == "" || u.Auth.Flow == auth.FlowNone {
		return nil
	}
	for name := range u.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return nil
		}
	}
	settings := auth.Settings(u.Auth)
	settings.URL = u.URL
	return accounts.Account(settings, caller)
}

// unauthorized returns the Failure for an error of the account, nil for others. The
// request was not run.
func (l *httpLink) unauthorized(err error) *Failure {
	var required *auth.Required
	var unsent *auth.Unsent
	switch {
	case errors.As(err, &required) && len(required.Scopes) > 0:
		return &Failure{Reason: required.Error(), Cause: CauseAccess, Scopes: required.Scopes}
	case errors.As(err, &required) && required.Problem == nil:
		return &Failure{Reason: required.Error(), Cause: CauseSignIn}
	case errors.As(err, &required): // signing in would fail, too
		return &Failure{Reason: l.redact(required.Error())}
	case errors.As(err, &unsent):
		return &Failure{Reason: l.redact(unsent.Error())}
	}
	return nil
}

// redact hides the secrets of the upstream's entry and of its sign-in in a text.
func (l *httpLink) redact(text string) string { return l.Account.Redact(l.Upstream.Redact(text)) }
