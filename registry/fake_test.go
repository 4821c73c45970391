package registry

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/config"
	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
	"mcpx/registry/live"
	"mcpx/registry/registrytest"
	"mcpx/registry/upstream"
)

// Short names for the fake upstream.
type (
	fake     = registrytest.Fake
	fakeLink = registrytest.Link
)

// inTime runs a test of a registry with one fake upstream in a synctest bubble, where
// an hour takes no time. The limits are the defaults.
func inTime(t *testing.T, f *fake, test func(t *testing.T, r *Registry), changes ...func(c *config.Upstream)) {
	t.Helper()
	mcptest.NothingLeft(t)
	f.InTime(t, func(t *testing.T) {
		r := New(registrytest.Profile(changes...), Options{Log: f.Log, MessageBytes: 1 << 20, ConnectsAtOnce: 2, Cache: f.Cache, PingEvery: f.Pings, Views: f.Views})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = r.Run(ctx) })
		synctest.Wait()
		test(t, r)
		cancel()
		wg.Wait()
		if u := r.Catalog().Upstream("a"); u.State != live.Stopped {
			t.Errorf("it is %s after the end", u.State)
		}
	})
}

// after waits, and then until every goroutine is idle.
func after(d time.Duration) { registrytest.After(d) }

// call makes a call for a client, which may be nil, and waits for its end.
func call(ctx context.Context, r *Registry, c upstream.Client) ([]byte, error) {
	return r.Call(ctx, "a", upstream.Request{Method: "tools/call", Meta: []byte("{}"), Client: c})
}

// loggingFake returns an upstream with logging, which stores the level that was set
// last.
func loggingFake(last *string) *fake {
	f := &fake{}
	f.Script = func(l *fakeLink, method, id string, message []byte) (bool, error) {
		switch method {
		case "initialize":
			l.Say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"capabilities":{"tools":{},"logging":{}}}}`)
		case "logging/setLevel":
			time.AfterFunc(registrytest.Get(f, &f.Takes), func() {
				level, _ := rawjson.String(rawjson.Get(rawjson.Get(message, "params"), "level"))
				f.Set(func(*fake) { *last, l.Level = level, level })
				l.Say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
			})
		default:
			return false, nil
		}
		return true, nil
	}
	return f
}
