package signin

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"mcpx/internal/neterr"
	"mcpx/internal/origin"
)

// Limits of requests to authorization servers.
const (
	requestTime   = 15 * time.Second
	maxReply      = 1 << 20
	maxHeaders    = 64 << 10
	metadataHops  = 3 // redirects of metadata
	discoveryTime = 10 * time.Second
)

// guard is the RoundTripper for everything that metadata points to. An upstream chooses
// these addresses, so guard allows only https, or http on loopback, only the addresses that
// check allows, and replies of at most maxReply.
type guard struct {
	upstream *url.URL
	issuer   string // host and port of the authorization server in the config; "" if there is none
	direct   http.RoundTripper
	proxied  http.RoundTripper // the proxy of the environment resolves names itself

	roots     *tls.Config                          // nil: the certificates of the system
	connected func(ctx context.Context) netip.Addr // connect; tests replace it
}

func newGuard(s Settings) *guard {
	g := &guard{upstream: &url.URL{}, issuer: hostPort(s.Issuer)}
	g.connected = g.connect
	if u, err := url.Parse(s.URL); err == nil {
		g.upstream = u
	}
	direct := &http.Transport{
		DialContext:            g.dial,
		TLSHandshakeTimeout:    neterr.DialTime,
		MaxResponseHeaderBytes: maxHeaders,
		DisableKeepAlives:      true, // a few requests an hour, and nothing to close
		ForceAttemptHTTP2:      true,
	}
	proxied := direct.Clone()
	proxied.DialContext = (&net.Dialer{Timeout: neterr.DialTime}).DialContext
	proxied.Proxy = http.ProxyFromEnvironment
	g.direct, g.proxied = direct, proxied
	return g
}

// client returns an http.Client behind the guard. It follows redirects only of GET:
// a redirected token request would send its secrets elsewhere.
func (g *guard) client() *http.Client {
	return &http.Client{
		Transport: g,
		Timeout:   requestTime,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if via[0].Method != http.MethodGet {
				return fmt.Errorf("%s redirects a token request, which is not followed", shown(via[0].URL.Host))
			}
			if len(via) > metadataHops {
				return errors.New("too many redirects")
			}
			return nil
		},
	}
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := checkEndpoint(r.URL.String()); err != nil {
		return nil, err
	}
	transport := g.direct
	if proxy, err := http.ProxyFromEnvironment(r); err == nil && proxy != nil {
		transport = g.proxied
		if ip, err := netip.ParseAddr(r.URL.Hostname()); err == nil {
			if err := g.check(r.Context(), hostPort(r.URL.String()), ip); err != nil {
				return nil, err
			}
		}
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if r.Method == http.MethodGet && response.StatusCode/100 == 4 { // there is no such document, whatever the reply says
		response.Body = http.NoBody
		return response, nil
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxReply:
		return nil, &forbidden{fmt.Sprintf("the reply of %s has more than %d bytes", shown(r.URL.Host), maxReply)}
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	return response, nil
}

// checkEndpoint parses a URL with https, or with http on loopback. Others are not allowed.
func checkEndpoint(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return nil, errors.New("it names an endpoint that is not a URL")
	case u.Scheme == "https" || u.Scheme == "http" && isLoopbackName(u.Hostname()):
		return u, nil
	}
	return nil, fmt.Errorf("it names the endpoint %s; only https is allowed, and http on this machine", shown(u.Scheme+"://"+u.Host))
}

func isLoopbackName(host string) bool {
	h, _ := origin.ParseWrittenHost(host)
	return h.IsLoopback()
}

// dial connects to a host and port. Each address is checked after DNS,
// right before the connection.
func (g *guard) dial(ctx context.Context, network, target string) (net.Conn, error) {
	d := net.Dialer{Timeout: neterr.DialTime, ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return g.check(ctx, strings.ToLower(target), to.Addr())
	}}
	return d.DialContext(ctx, network, target)
}

// check decides about an address of a target, which is a host and port. Public addresses are
// allowed. A loopback address needs an upstream on this machine, and a private address an
// upstream with the same address. The authorization server that the config names may have
// both, because a person chose it. Link-local addresses and those of cloud metadata services
// are never allowed.
func (g *guard) check(ctx context.Context, target string, ip netip.Addr) error {
	ip = embedded(ip)
	kind := kindOf(ip)
	switch {
	case kind == public:
		return nil
	case kind != loopback && kind != private:
		return &forbidden{fmt.Sprintf("it points to %s, a %s address, which is never allowed; check the url of the server", ip, kind)}
	case g.issuer != "" && target == g.issuer, g.isUpstream(target):
		return nil
	}
	own := g.ownAddress(ctx)
	if own == ip || kind == loopback && own.IsValid() && kindOf(own) == loopback {
		return nil
	}
	text := fmt.Sprintf("it points to %s, a %s address, which is not the address of %s", ip, kind, shown(g.upstream.Hostname()))
	if g.issuer == "" {
		text += "; if you trust the authorization server there, name it in auth.issuer of the config"
	}
	return &forbidden{text}
}

// isUpstream reports whether a target is the upstream itself, as its certificate will prove.
func (g *guard) isUpstream(target string) bool {
	return g.upstream.Scheme == "https" && target == hostPort(g.upstream.String())
}

// ownAddress returns the upstream's own address: the one in its URL, or the one that a
// connection to it uses. A name alone proves nothing, because its owner may give it any address. So
// an upstream with a name must have a certificate for it, and must not be behind a proxy.
func (g *guard) ownAddress(ctx context.Context) netip.Addr {
	host := g.upstream.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil {
		return embedded(ip)
	}
	if isLoopbackName(host) {
		return netip.IPv6Loopback()
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: g.upstream})
	if g.upstream.Scheme != "https" || proxy != nil || err != nil {
		return netip.Addr{}
	}
	return embedded(g.connected(ctx))
}

// connect connects to the upstream, checks its certificate, and returns the address that
// the connection used. The address is not valid if that fails.
func (g *guard) connect(ctx context.Context) netip.Addr {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: neterr.DialTime}, Config: g.roots}
	conn, err := d.DialContext(ctx, "tcp", hostPort(g.upstream.String()))
	if err != nil {
		return netip.Addr{}
	}
	defer func() { _ = conn.Close() }()
	to, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // not valid after an error
	return to.Addr()
}

// hostPort returns the host and port of a URL as net/http dials them; "" if it has none.
func hostPort(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// forbidden is the error for an address that metadata must not lead to, and for a reply
// that is too long.
type forbidden struct{ reason string }

func (e *forbidden) Error() string { return e.reason }

// failure returns why a request to an authorization server failed, in plain words.
func failure(err error) error {
	if refused, ok := errors.AsType[*forbidden](err); ok {
		return refused
	}
	if sent, ok := errors.AsType[*url.Error](err); ok && errors.Is(err, context.DeadlineExceeded) {
		return tooSlow(sent.URL, requestTime)
	}
	return errors.New(neterr.Reason(err))
}

// tooSlow returns the error for a server that did not answer a request, or not completely.
func tooSlow(address string, limit time.Duration) error {
	return fmt.Errorf("%s did not send its whole answer within %s; check whether that server works, then try again", shown(originOf(address)), limit)
}
