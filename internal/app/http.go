package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"mcpx/config"
	"mcpx/internal/neterr"
	"mcpx/internal/parts/callers"
	"mcpx/internal/parts/console"
	"mcpx/internal/parts/lock"
	"mcpx/internal/parts/metrics"
	"mcpx/internal/parts/signin"
	"mcpx/server/access"
	httpfront "mcpx/server/http"
	"mcpx/server/pages"
)

// ListenHTTP serves over HTTP until ctx ends.
func (a *App) ListenHTTP(ctx context.Context) error {
	c := a.config
	guard := guardOf(c, a.profileNames)
	listener, err := listen(ctx, guard)
	if err != nil {
		_ = a.log.Close()
		return err
	}
	ctx, stop := a.handleHangup(ctx)
	defer stop()
	a.giveHeadStart()
	defer a.listed()
	guard.Bind, guard.Headers = listener.Addr().String(), a.forwardedHeaders
	address := reachable(c.Server.Host, listener.Addr())
	a.address = cmp.Or(c.Server.PublicURL, "http://"+address)
	web := &httpfront.HTTP{
		Guard:     guard,
		Log:       a.log.Logger,
		Limits:    c.Limits,
		StopDelay: c.Server.StopDelay,
		Stateless: a.Stateless,
		Freed:     a.memory.releaseSoon,
	}
	a.addReplicas(web)
	a.metrics = metrics.New(a.measured, web.Open)
	if a.store != nil {
		web.StoreState = a.store.State
		a.metrics.Add(storeNumbers(a.store)...)
	}
	web.Routes = a.routes(web)
	a.warn()
	web.Handler()
	a.reload.web = web
	a.setServers()
	for _, p := range a.Profiles() {
		a.ready("http", p).Str("url", fmt.Sprintf("http://%s/mcp/%s", address, url.PathEscape(p.Name))).Msg("JSON-RPC 2.0 ready over HTTP")
	}
	a.log.Info().Str("url", fmt.Sprintf("http://%s/", address)).Msg("console ready for people")
	if c.Server.Port == 0 { // whoever asked for any port must learn it, at any log level
		fmt.Fprintf(a.stderr, "mcpx: listening on http://%s/mcp\n", address)
	}
	a.tracer.Start()
	return a.Run(ctx, func(ctx context.Context) error { return web.Run(ctx, listener) })
}

// routes returns the routes of the front that are not for MCP clients.
func (a *App) routes(web *httpfront.HTTP) []httpfront.Route {
	core := &pages.Pages{Front: web, Reload: a.Reload, Problem: a.ReloadProblem, AuditFailed: a.audit.Failed}
	page := &console.Console{Front: web, Editing: a.editing(), SignIn: signin.StatusOf, Review: lock.Review}
	reviews := &lock.Reviews{Front: web, Apply: a.approve}
	people := &signin.Pages{Front: web, Accounts: a.Accounts, Callback: a.address + "/oauth/callback"}
	return slices.Concat(core.Routes(), page.Routes(), reviews.Routes(), people.Routes(), a.search.Routes(), a.metrics.Routes(a.log.Flush))
}

// guardOf returns what decides which requests reach the front of a config.
func guardOf(c *config.Config, profiles func() []string) access.Guard {
	guard := access.Guard{Server: c.Server}
	callers.New(c.Server, profiles).Guard(&guard)
	return guard
}

// CheckBind returns an error if mcpx must not listen on the host of a config.
func CheckBind(c *config.Config) error {
	guard := guardOf(c, nil)
	return guard.CheckBind()
}

// listen opens the address of the config. Without a token it must be on this machine.
func listen(ctx context.Context, guard access.Guard) (net.Listener, error) {
	if err := guard.CheckBind(); err != nil {
		return nil, err
	}
	address := net.JoinHostPort(guard.Host, strconv.Itoa(guard.Port))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %s\nhint: choose another port with --port (0: any free one), or another address with --host", address, listenProblem(err))
	}
	return listener, nil
}

// listenProblem says in plain words why an address cannot be opened.
func listenProblem(err error) string {
	const inUseOnWindows = syscall.Errno(10048)
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, inUseOnWindows) {
		return "another program uses this port"
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err.Error()
	}
	return neterr.Reason(err)
}

// measured returns the profiles for /metrics.
func (a *App) measured() (list []metrics.Profile) {
	for _, p := range a.Profiles() {
		list = append(list, metrics.Profile{Name: p.Name, Expose: p.Expose, Catalog: p.Registry.Catalog()})
	}
	return list
}

// profileNames returns the names of the profiles that are served.
func (a *App) profileNames() (names []string) {
	for _, p := range a.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// forwardedHeaders returns the headers of requests that upstreams get.
func (a *App) forwardedHeaders() (names []string) {
	for _, p := range a.Profiles() {
		names = append(names, p.ForwardedHeaders()...)
	}
	return names
}

// reachable returns the address that a client on this machine can connect to. For a
// front that listens on every address that is loopback, which the guard always accepts.
func reachable(host string, bound net.Addr) string {
	at, err := netip.ParseAddrPort(bound.String())
	if err != nil || !at.Addr().Unmap().IsUnspecified() {
		return bound.String()
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if strings.Contains(host, ":") { // bound is IPv6 for 0.0.0.0 too
		loopback = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(loopback, at.Port()).String()
}
