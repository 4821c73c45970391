package redis

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/parts/replicas/storetest"
	"mcpx/internal/store"
)

// The slow network takes longer for a long value than a short request may take, and much less
// than the value may take.
const (
	shortLimit = 2 * store.Limit
	longMiB    = 32
	longTime   = shortLimit * 5 / 4
)

// TestSlowNetwork: a request with a long value has time for its transfer.
func TestSlowNetwork(t *testing.T) {
	mcptest.NothingLeft(t)
	r, err := Open(slowNetwork(t, storetest.Start(t)), Options{Limit: shortLimit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	value, ctx := make([]byte, longMiB<<20), t.Context()
	lock := must[store.Lock](t)(r.Lock(ctx, "locked"))
	defer lock.Unlock()
	for _, row := range []struct {
		name    string
		request func() error
	}{
		{"Set", func() error { return r.Set(ctx, "key", value, time.Minute) }},
		{"Part", func() error { _, err := r.Part(ctx, "key", 0, len(value)); return err }},
		{"Add", func() error { _, err := r.Add(ctx, "other", value, time.Minute); return err }},
		{"Publish", func() error { return r.Publish(ctx, value) }},
		{"Set of a lock", func() error { return lock.Set(ctx, value, time.Minute) }},
	} {
		if err := row.request(); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
	}
}

// slowNetwork returns the address of a server behind a slow network: a proxy that waits after
// each MiB.
func slowNetwork(t *testing.T, s *storetest.Server) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy(t, listener, s, longTime/longMiB)
	return "redis://" + listener.Addr().String()
}

// proxy forwards connections to a server until the test ends. It waits after each MiB.
func proxy(t *testing.T, listener net.Listener, s *storetest.Server, wait time.Duration) {
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	forward := func(to, from net.Conn) {
		defer func() { _ = to.Close() }()
		for {
			if _, err := io.CopyN(to, from, 1<<20); err != nil {
				return
			}
			<-time.After(wait)
		}
	}
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", s.Host())
			if err != nil {
				_ = client.Close()
				continue
			}
			all.Go(func() { forward(server, client) })
			all.Go(func() { forward(client, server) })
		}
	})
}

// TestTransferTime: the time grows with the bytes, up to a limit.
func TestTransferTime(t *testing.T) {
	for bytes, want := range map[int]time.Duration{
		0: 0, 8 << 20: time.Second, 16 << 20: 2 * time.Second, 32 << 20: maxTransfer, 1 << 40: maxTransfer,
	} {
		if got := transferTime(bytes); got.Round(50*time.Millisecond) != want {
			t.Errorf("%d bytes: %s, want %s", bytes, got, want)
		}
	}
}
