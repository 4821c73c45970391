package link

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"mcpx/config"
	"mcpx/internal/auth"
	"mcpx/internal/neterr"
)

// newTransport returns a transport with a pool for many calls at once. It honors the
// proxies of the environment.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: neterr.DialTime, KeepAliveConfig: probes}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		MaxIdleConns:          httpPool,
		MaxIdleConnsPerHost:   httpPool,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		ExpectContinueTimeout: time.Second,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: probes.Idle, PingTimeout: probes.Interval},
	}
}

// probes detect within a minute a connection whose other end vanished silently, as
// after a laptop's sleep.
var probes = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3}

// redirected is a redirect that is not followed.
type redirected struct{ reason string }

func (e *redirected) Error() string { return e.reason }

// sameHost refuses redirects that would send the configured headers to another host, or
// turn a POST into a GET.
func sameHost(r *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= 5:
		return &redirected{"too many redirects"}
	case r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme:
		return &redirected{fmt.Sprintf("it redirects to %s, where its headers must not go; use that url if it is right", r.URL.Host)}
	case r.Method != via[0].Method: // by 301, 302 or 303, which turn a POST into a GET
		return &redirected{fmt.Sprintf("it redirects POST to %s as GET; configure that url directly", r.URL.Path)}
	}
	return nil
}

// unreachable reports whether no connection could be made, which ends the session. A
// connection that breaks ends only its own call.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// denied returns the Failure for a response that refuses access, nil for others.
func (l *httpLink) denied(response *http.Response, reason string) *Failure {
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &Failure{Reason: fmt.Sprintf("authentication failed: %s; check its headers", reason), Cause: CauseAuth}
	}
	return nil
}

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
