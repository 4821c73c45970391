package registry

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// newTransport has a pool for many calls at once; proxies of the environment are
// honoured.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAliveConfig: probes}).DialContext,
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
