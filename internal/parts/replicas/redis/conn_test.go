package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/parts/replicas/storetest"
	"mcpx/internal/store"
)

// TestCanceledWait: a request ends when its caller gives up, although the server hangs.
func TestCanceledWait(t *testing.T) {
	mcptest.NothingLeft(t)
	server := storetest.Start(t)
	r := opener(t, server.Address())()
	must[[]byte](t)(r.Get(t.Context(), "key")) // connects
	server.Pause()
	defer server.Resume()
	reason := errors.New("the caller gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(reason) })
	begun := time.Now()
	if _, err := r.Get(ctx, "key"); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took > bound {
		t.Errorf("it took %s", took)
	}
	if err := r.Err(); err != nil {
		t.Errorf("the store is in doubt: %v", err)
	}
}

// TestClosedIdleConnections: connections that the server closes while nobody uses them cost
// no request.
func TestClosedIdleConnections(t *testing.T) {
	mcptest.NothingLeft(t)
	server := storetest.Start(t)
	a := must[*address](t)(parse(server.Address(), store.Limit))
	c := a.connect()
	defer c.close()
	for range 3 {
		if _, err := c.do(t.Context(), "", "PING"); err != nil {
			t.Fatal(err)
		}
		server.Do("CLIENT KILL TYPE normal")
		<-time.After(trustIdle)
	}
}

// TestLimits: the parameters of an address limit the connections of a pool.
func TestLimits(t *testing.T) {
	usual := limits{open: 10 * runtime.GOMAXPROCS(0), idle: 10 * runtime.GOMAXPROCS(0), idleTime: 30 * time.Minute}
	for text, want := range map[string]limits{
		"":            usual,
		"pool_size=5": {open: 5, idle: 5, idleTime: usual.idleTime},
		"pool_size=5&max_active_conns=3&max_idle_conns=2&idle_timeout=10&max_conn_age=1h": {open: 3, idle: 2, idleTime: 10 * time.Second, lifetime: time.Hour},
		"pool_size=5&max_idle_conns=9&conn_max_idle_time=-1&conn_max_lifetime=2m":         {open: 5, idle: 5, lifetime: 2 * time.Minute},
	} {
		values := must[url.Values](t)(url.ParseQuery(text))
		if got := (&query{values: values}).limits(); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// TestPoolSize: a pool has no more connections than it may.
func TestPoolSize(t *testing.T) {
	mcptest.NothingLeft(t)
	server := storetest.Start(t)
	a := must[*address](t)(parse(server.Address()+"?pool_size=2", store.Limit))
	c := a.connect()
	defer c.close()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 20 {
				if _, err := c.do(t.Context(), "", "PING"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	const own = "total_connections_received:" // one of the start, one of this question
	stats := server.Do("INFO stats")
	if !strings.Contains(stats, own+"4\r") && !strings.Contains(stats, own+"3\r") {
		_, stats, _ = strings.Cut(stats, own)
		t.Errorf("the server has received %.3s connections", stats)
	}
}

// TestUserDatabaseAndTLS: an address names a user, a database and TLS. A certificate that is
// not trusted is refused, unless the address says otherwise.
func TestUserDatabaseAndTLS(t *testing.T) {
	mcptest.NothingLeft(t)
	server := storetest.Start(t)
	server.Do("ACL SETUSER me on >pass/word allkeys allchannels +@all")
	server.Do("ACL SETUSER default off")
	address := strings.Replace(encrypted(t, server), "//", "//me:pass%2Fword@", 1) + "/2?client_name=mcpx"
	r := opener(t, address+"&skip_verify=true")()
	if err := r.Set(t.Context(), "key", []byte("value"), time.Minute); err != nil {
		t.Fatal(err)
	}
	reply := must[any](t)(r.(*Store).client.do(t.Context(), "", "CLIENT", "INFO"))
	for _, want := range []string{" db=2 ", " user=me ", " name=mcpx "} {
		if info := text(reply); !strings.Contains(info, want) {
			t.Errorf("the server does not see%s: %s", want, info)
		}
	}
	if err := opener(t, address)().Set(t.Context(), "key", nil, time.Minute); err == nil || !strings.Contains(err.Error(), "certificate is not trusted") {
		t.Errorf("got %v", err)
	}
}

// encrypted returns the address of a server behind a proxy that ends TLS.
func encrypted(t *testing.T, s *storetest.Server) string {
	web := httptest.NewTLSServer(nil) // has a certificate
	certificate := web.TLS.Certificates[0]
	web.Close()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	proxy(t, listener, s, 0)
	return "rediss://" + listener.Addr().String()
}

// TestClose: requests during and after Close fail, and Close is safe to call twice.
func TestClose(t *testing.T) {
	mcptest.NothingLeft(t)
	server := storetest.Start(t)
	for range 20 {
		r := opener(t, server.Address()+"?pool_size=2")().(*Store)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for r.Set(t.Context(), "key", nil, time.Minute) == nil {
					ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
					_, _ = r.Get(ctx, "key")
					cancel()
				}
			})
		}
		all.Go(func() { r.Listen(t.Context(), func([]byte) {}) })
		_ = r.Close()
		_ = r.Close()
		all.Wait()
	}
}
