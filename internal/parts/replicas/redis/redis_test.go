package redis

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/mcptest"
	"mcpx/internal/parts/replicas/storetest"
	"mcpx/internal/store"
)

// bound is the longest time that a request may take on a busy machine. Without Limit a
// request to a server that hangs takes 5 s at least.
const bound = 10 * store.Limit

// logged collects log lines.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func openLogged(t *testing.T, address string) (*Store, *logged) {
	log := &logged{}
	r, err := Open(address, Options{Log: zerolog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	r.Start()
	return r, log
}

// TestOutages stops a server in several ways while many goroutines use the store, and
// starts it again: no request takes long, the state is known, and it is logged once.
func TestOutages(t *testing.T) {
	for _, outage := range []struct {
		name       string
		begin, end func(s *storetest.Server)
	}{
		{"a server that is gone", (*storetest.Server).Stop, (*storetest.Server).Start},
		{"a server that hangs", (*storetest.Server).Pause, (*storetest.Server).Resume},
	} {
		t.Run(outage.name, func(t *testing.T) {
			mcptest.NothingLeft(t)
			server := storetest.Start(t)
			r, log := openLogged(t, server.Address())
			load := startLoad(t, r)
			heard := listen(t, r)
			for range 2 {
				await(t, "a request that succeeds", load.next(&load.succeeded))
				await(t, "a message", func() bool { return heard(r) })
				outage.begin(server)
				await(t, "a failure", load.next(&load.failed))
				await(t, "the state of the store", func() bool { return strings.Contains(lastLine(log.String()), "cannot be used") })
				if s := r.State(); s.State != "down" || s.Reason == "" || s.Failures == 0 || s.Requests <= s.Failures || s.Since.IsZero() {
					t.Errorf("state %+v", s)
				}
				outage.end(server)
				await(t, "the state of the store", func() bool { return strings.Contains(lastLine(log.String()), "used again") })
			}
			load.stop()
			if took := time.Duration(load.longest.Load()); took > bound {
				t.Errorf("a request took %s", took)
			}
			for i, line := range strings.Split(strings.TrimSpace(log.String()), "\n") {
				if isDown := strings.Contains(line, "cannot be used"); isDown != (i%2 == 0) {
					t.Errorf("the same state is logged twice:\n%s", log)
				}
			}
		})
	}
}

// load is a number of goroutines that use a store all the time.
type load struct {
	succeeded, failed, longest atomic.Int64
	stop                       func()
}

func startLoad(t *testing.T, s store.Store) *load {
	l := &load{}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	l.stop = func() { cancel(); all.Wait() }
	t.Cleanup(l.stop)
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				begun := time.Now()
				err := s.Set(context.Background(), "load", []byte("value"), time.Minute)
				if took := int64(time.Since(begun)); took > l.longest.Load() {
					l.longest.Store(took)
				}
				if err == nil {
					l.succeeded.Add(1)
					continue
				}
				l.failed.Add(1)
				<-time.After(time.Millisecond)
			}
		})
	}
	return l
}

// next returns a function that reports whether a counter has grown since.
func (l *load) next(counter *atomic.Int64) func() bool {
	before := counter.Load()
	return func() bool { return counter.Load() > before+10 }
}

// listen returns a function that sends a message and reports whether one arrives.
func listen(t *testing.T, s store.Store) func(from store.Store) bool {
	ctx, cancel := context.WithCancel(t.Context())
	messages := make(chan []byte, 1000)
	var all sync.WaitGroup
	all.Go(func() { s.Listen(ctx, func(message []byte) { messages <- message }) })
	t.Cleanup(func() { cancel(); all.Wait() })
	return func(from store.Store) bool {
		_ = from.Publish(ctx, []byte("message"))
		select {
		case <-messages:
			return true
		case <-time.After(20 * time.Millisecond):
			return false
		}
	}
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// TestServerThatNeverAnswers uses a listener that accepts connections, as a proxy without a
// server does.
func TestServerThatNeverAnswers(t *testing.T) {
	mcptest.NothingLeft(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for _, query := range []string{"", "?addr=" + listener.Addr().String(), "?master_name=main"} {
		r, _ := openLogged(t, "redis://:secret-password@"+listener.Addr().String()+query)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				begun := time.Now()
				_, err := r.Get(t.Context(), "key")
				if took := time.Since(begun); err == nil || took > bound {
					t.Errorf("%q: %v after %s", query, err, took)
				}
				if err.Error() != "the store cannot be used: no answer within 250ms" {
					t.Errorf("%q: %v", query, err)
				}
			})
		}
		all.Wait()
		begun := time.Now()
		for range 100 { // 25 s if each took Limit
			_ = r.Set(t.Context(), "key", nil, time.Minute)
		}
		if took := time.Since(begun); took > bound {
			t.Errorf("%q: 100 requests to a store that is down took %s", query, took)
		}
		_ = r.Close()
	}
}

// TestCanceledRequest checks that a caller who gives up does not put the store in doubt.
func TestCanceledRequest(t *testing.T) {
	r, _ := openLogged(t, storetest.Start(t).Address())
	reason := errors.New("the caller gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := r.Get(ctx, "key"); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	if n := r.State().Failures; n != 0 {
		t.Errorf("%d failures are counted", n)
	}
}

// TestRefusedWrites checks that a server that answers, but takes no writes, counts as down.
func TestRefusedWrites(t *testing.T) {
	server := storetest.Start(t)
	server.Do("CONFIG SET requirepass secret-password")
	r, log := openLogged(t, server.Address())
	await(t, "the state of the store", func() bool { return r.Err() != nil })
	if _, err := r.Get(t.Context(), "key"); err == nil || !strings.Contains(err.Error(), "Authentication required") {
		t.Errorf("got %v", err)
	}
	other, _ := openLogged(t, strings.Replace(server.Address(), "//", "//:secret-password@", 1))
	await(t, "a request with the password", func() bool { return other.Set(t.Context(), "key", nil, time.Minute) == nil })
	if shown := other.State().Address; shown != server.Address() {
		t.Errorf("the store is shown as %s", shown)
	}
	await(t, "the log", func() bool { return strings.Contains(log.String(), "cannot be used") })
}

func TestAddresses(t *testing.T) {
	for _, row := range []struct{ name, address, want string }{
		{"a server", "redis://127.0.0.1:6379", ""},
		{"user, password, database, prefix", "redis://me:pass%2Fword@example.com:6379/2?prefix=team-a", ""},
		{"TLS", "rediss://example.com/0?skip_verify=true", ""},
		{"options of the library", "redis://localhost?pool_size=5&read_timeout=1h", ""},
		{"Sentinel", "redis://a:26379?master_name=main&addr=b:26379", ""},
		{"a cluster", "rediss://a:7000?addr=b:7000&addr=c:7000", ""},
		{"Sentinels and servers with passwords", "redis://:one@a?master_name=main&username=me&password=two", ""},
		{"another scheme", "http://pass-word@localhost", "not the address"},
		{"no host", "redis://", "not the address"},
		{"a password with a slash", "redis://:pass-word/x@localhost", "not the address"},
		{"a password with a question mark", "redis://:123?pass-word@localhost", "not the address"},
		{"an unknown option", "redis://localhost?pass-word=1", "not the address"},
		{"a password as an option", "redis://localhost?password=pass-word", "not the address"},
		{"a number that is none", "redis://localhost?pool_size=many", "not the address"},
		{"a time that is none", "redis://localhost?idle_timeout=pass-word", "not the address"},
		{"yes or no, but neither", "redis://localhost?pool_fifo=maybe", "not the address"},
		{"a database that is no number", "redis://localhost/pass-word", "not the address"},
		{"certificates without TLS", "redis://localhost?skip_verify=true", "not the address"},
		{"a node without a port", "redis://a?addr=b", "not the address"},
		{"a prefix with braces", "redis://localhost?prefix={a}", "not the address"},
		{"an empty prefix", "redis://localhost?prefix=", "not the address"},
		{"reads from replicas", "redis://a?addr=b:1&read_only=true", "not the address"},
		{"reads from replicas of a Sentinel group", "redis://a?master_name=main&replica_only=1", "not the address"},
		{"nothing", "", "not the address"},
	} {
		_, err := parse(row.address, store.Limit)
		switch {
		case row.want == "" && err != nil, row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: %v", row.name, err)
		case err != nil && strings.Contains(err.Error(), "pass-word"):
			t.Errorf("%s: the error has the password: %v", row.name, err)
		}
	}
}
