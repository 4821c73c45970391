package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"mcpx/config"
	"mcpx/internal/console"
	"mcpx/server"
	"mcpx/server/access"
	"mcpx/server/front"
)

// HTTPOptions choose what the HTTP front serves besides what the config says.
type HTTPOptions struct {
	Schema    string // only this one; empty: every schema that is enabled
	Stateless bool
}

// HTTP is the profiles of a config that are served over HTTP.
type HTTP struct {
	config   *config.Config
	options  HTTPOptions
	profiles []*config.Profile
}

// NewHTTP checks what is to be served. Nothing runs yet.
func NewHTTP(c *config.Config, o HTTPOptions) (*HTTP, error) {
	if err := access.CheckBind(c.Server.Host, c.Server.Token); err != nil {
		return nil, err
	}
	profiles, err := chosen(c, o.Schema)
	if err != nil {
		return nil, err
	}
	return &HTTP{config: c, options: o, profiles: profiles}, nil
}

// Serve serves until ctx ends.
func (h *HTTP) Serve(ctx context.Context, stderr io.Writer) error {
	c := h.config
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(c.Server.Host, strconv.Itoa(c.Server.Port)))
	if err != nil {
		return fmt.Errorf("cannot listen: %w; choose another port with --port, 0 for any free one", err)
	}
	s, err := share(c, stderr)
	if err != nil {
		return err
	}
	ctx, stop := s.handleHangup(ctx)
	defer stop()
	s.metrics = newMetrics(h.profiles)
	front := &front.HTTP{
		Metrics:   s.metrics.handler(s.journal.flush),
		Console:   console.Handler(),
		Servers:   map[string]*server.Server{},
		Guard:     h.guard(listener.Addr()),
		Log:       s.log,
		BodyBytes: c.Limits.BodyBytes,
		Sessions:  c.Limits.Sessions,
		Idle:      c.Limits.SessionIdle,
		Calls:     c.Limits.CallsPerClient,
		Unread:    c.Limits.UnreadBytes,
		Stateless: h.options.Stateless,
	}
	s.warn(c)
	listed := s.giveHeadStart()
	address := h.address(listener.Addr())
	var apps []*App
	for _, p := range h.profiles {
		a := s.app(c, p)
		apps = append(apps, a)
		front.Servers[p.Name] = server.New(p, a.Registry, a.Executor, server.Options{Log: s.log, Version: Version(), AlwaysLoad: c.AlwaysLoad, Listed: listed})
		s.log.Info().Str("version", Version()).Str("mode", "http").Str("config", c.File).Str("schema", p.Name).Str("servers", a.servers()).
			Str("url", fmt.Sprintf("http://%s/mcp/%s", address, url.PathEscape(p.Name))).Msg("JSON-RPC 2.0 ready over HTTP")
	}
	s.log.Info().Str("url", fmt.Sprintf("http://%s/", address)).Msg("console ready for people")
	s.metrics.watch(front.Open, apps)
	if c.Server.Port == 0 { // whatever is logged, the one who asked for any port must learn it
		fmt.Fprintf(stderr, "mcpx: listening on http://%s/mcp\n", address)
	}
	return s.with(ctx, apps, func(ctx context.Context) error { return front.Run(ctx, listener) })
}

// guard lets those through who name the address that is listened on, or the name
// that it was found by.
func (h *HTTP) guard(bound net.Addr) access.Guard {
	s := h.config.Server
	g := access.Guard{Token: s.Token, AllowedHosts: s.AllowedHosts, AllowedOrigins: s.AllowedOrigins, Bind: bound.String()}
	if _, err := netip.ParseAddr(s.Host); err != nil {
		g.AllowedHosts = append(slices.Clip(g.AllowedHosts), s.Host)
	}
	return g
}

// address is where a client on this machine can connect to. What listens on every
// address has none to show; loopback is the one that the guard lets through
// whatever the config says.
func (h *HTTP) address(bound net.Addr) string {
	at, err := netip.ParseAddrPort(bound.String())
	if err != nil || !at.Addr().Unmap().IsUnspecified() {
		return bound.String()
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if strings.Contains(h.config.Server.Host, ":") { // bound is IPv6 for 0.0.0.0 too
		loopback = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(loopback, at.Port()).String()
}

// chosen are the profiles to serve.
func chosen(c *config.Config, name string) ([]*config.Profile, error) {
	if name != "" {
		p, err := c.Profile(name)
		return []*config.Profile{p}, err
	}
	var profiles []*config.Profile
	for i := range c.Profiles {
		if c.Profiles[i].Enabled {
			profiles = append(profiles, &c.Profiles[i])
		}
	}
	if len(profiles) == 0 {
		return nil, fmt.Errorf("%s: no schema is enabled", c.File)
	}
	return profiles, nil
}
