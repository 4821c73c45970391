package link

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

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

// unauthorized returns the Failure for an error of the account, nil for others. The
// request was not run.
func (l *httpLink) unauthorized(err error) *Failure {
	denied, ok := errors.AsType[*Denied](err)
	if !ok {
		return nil
	}
	f := denied.Failure
	f.Reason = l.redact(f.Reason)
	return &f
}

// redact hides the secrets of the upstream's entry and of its account in a text.
func (l *httpLink) redact(text string) string {
	text = l.Upstream.Redact(text)
	if l.Account != nil {
		text = l.Account.Redact(text)
	}
	return text
}
