package registry

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// dialTime bounds how long a connection takes.
const dialTime = 10 * time.Second

// newTransport has a pool for many calls at once; proxies of the environment are
// honoured.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTime, KeepAliveConfig: probes}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		MaxIdleConns:          httpPool,
		MaxIdleConnsPerHost:   httpPool,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		ExpectContinueTimeout: time.Second,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: probes.Idle, PingTimeout: probes.Interval},
	}
}

// probes find a connection whose other end is gone without a word, as after a
// laptop's sleep, within a minute.
var probes = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 3}

// redirected is a redirect that is not followed.
type redirected struct{ reason string }

func (e *redirected) Error() string { return e.reason }

// sameHost refuses redirects that would carry the configured headers elsewhere.
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

// unreachable reports whether nobody is there to talk to: then the session is
// over. One connection that breaks costs only its own call.
func unreachable(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}

// plainReason says in plain words why a request over a network failed.
func plainReason(err error) string {
	var (
		refused = errors.Is(err, syscall.ECONNREFUSED)
		dns     *net.DNSError
		op      *net.OpError
		sent    *url.Error
		cert    *tls.CertificateVerificationError
	)
	errors.As(err, &op)
	switch {
	case refused && op != nil && op.Addr != nil:
		return fmt.Sprintf("nothing listens on %s (connection refused)", op.Addr)
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("host %s was not found", dns.Name)
	case errors.As(err, &cert):
		return "its certificate is not trusted: " + cert.Err.Error()
	case op != nil && op.Op == "dial" && op.Timeout() && op.Addr != nil:
		return fmt.Sprintf("no connection to %s within %s", op.Addr, dialTime)
	case errors.As(err, &sent) && sent.Error() == err.Error():
		return sent.Err.Error() // without the method and the address
	}
	return err.Error()
}

// needsSignIn reports whether an answer asks for OAuth: a 401 that names where to
// sign in, from a server that got no Authorization header.
func (l *httpLink) needsSignIn(answer *http.Response) bool {
	if answer.StatusCode != http.StatusUnauthorized || answer.Request.Header.Get("Authorization") != "" {
		return false
	}
	for _, challenge := range answer.Header.Values("WWW-Authenticate") {
		if strings.Contains(strings.ToLower(challenge), "resource_metadata") {
			return true
		}
	}
	return false
}

// denied is the failure of an upstream that does not let mcpx in; nil if it does.
func (l *httpLink) denied(answer *http.Response, reason string) *failure {
	switch {
	case l.needsSignIn(answer):
		return &failure{reason: "needs sign-in (OAuth), which mcpx cannot do yet", cause: CauseSignIn}
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden:
		return &failure{reason: fmt.Sprintf("authentication failed: %s; check its headers", reason), cause: CauseAuth}
	}
	return nil
}
