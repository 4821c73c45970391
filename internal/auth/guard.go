package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
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
// these addresses, so guard allows only https, or http on loopback, only public
// addresses, or addresses of the upstream's own kind, and replies of at most maxReply.
type guard struct {
	upstream string // its host name
	direct   http.RoundTripper
	proxied  http.RoundTripper // the proxy of the environment resolves names itself
}

func newGuard(upstream string) *guard {
	g := &guard{}
	if u, err := url.Parse(upstream); err == nil {
		g.upstream = u.Hostname()
	}
	direct := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: neterr.DialTime, ControlContext: g.checkDial}).DialContext,
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
			if err := g.check(r.Context(), ip); err != nil {
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

// checkDial checks the address that is dialed, after names are resolved.
func (g *guard) checkDial(ctx context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return g.check(ctx, to.Addr())
}

// check allows public addresses, and addresses of the same kind as the upstream's.
func (g *guard) check(ctx context.Context, ip netip.Addr) error {
	kind := kindOf(ip)
	if kind == public || kind != reserved && g.upstreamHas(ctx, kind) {
		return nil
	}
	return &forbidden{fmt.Sprintf("it points to %s, a %s address, which %s is not", ip, kind, shown(g.upstream))}
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
	return errors.New(neterr.Reason(err))
}

// upstreamHas reports whether the upstream has an address of that kind.
func (g *guard) upstreamHas(ctx context.Context, kind addressKind) bool {
	if ip, err := netip.ParseAddr(g.upstream); err == nil {
		return kindOf(ip) == kind
	}
	ips, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", g.upstream) // none after an error
	return slices.ContainsFunc(ips, func(ip netip.Addr) bool { return kindOf(ip) == kind })
}

// addressKind tells addresses apart by who can reach them.
type addressKind string

const (
	public    addressKind = "public"
	loopback  addressKind = "loopback"
	private   addressKind = "private"
	linkLocal addressKind = "link-local"
	reserved  addressKind = "reserved"
)

var (
	sharedSpace = netip.MustParsePrefix("100.64.0.0/10") // between a provider's customers (RFC 6598)
	translated  = netip.MustParsePrefix("64:ff9b::/96")  // IPv4 addresses in IPv6 (RFC 6052)
)

func kindOf(ip netip.Addr) addressKind {
	ip = ip.Unmap().WithZone("")
	if translated.Contains(ip) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	switch {
	case ip.IsLoopback(), ip.IsUnspecified(): // dialing 0.0.0.0 reaches this machine
		return loopback
	case ip.IsPrivate(), sharedSpace.Contains(ip):
		return private
	case ip.IsLinkLocalUnicast():
		return linkLocal
	case !ip.IsGlobalUnicast():
		return reserved
	}
	return public
}
