package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/link"
	"mcpx/internal/listcache"
	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
	"mcpx/internal/upstream"
	"mcpx/registry/live"
)

// transportFake is the transport of the fake upstream.
const transportFake config.Transport = "fake"

// fake is an upstream inside the test, which uses the test's clock.
type fake struct {
	mu       sync.Mutex
	down     bool        // dialling fails
	silent   bool        // it never responds
	dialled  []time.Time // when it was dialled
	current  *fakeLink
	progress time.Duration    // between two progress notifications of a call; 0: none
	takes    time.Duration    // until it responds to a call
	starts   time.Duration    // until it is dialled
	stops    time.Duration    // until it is closed
	script   script           // handles messages first; may be nil
	cache    *listcache.Cache // of the registry; may be nil
	pings    time.Duration    // between two pings of the registry; 0: the default
	log      zerolog.Logger   // of the registry

	listed int // number of tools/list; its tool is named after it
}

// say sends a message to mcpx, and waits until it is handled.
func (f *fake) say(format string, args ...any) {
	f.current.say(fmt.Sprintf(format, args...))
	synctest.Wait()
}

// script handles a message that was sent to the upstream; done is false for messages
// that it leaves to the fake. Send returns its error.
type script func(l *fakeLink, method, id string, message []byte) (done bool, err error)

// fakeLink is one connection to a fake.
type fakeLink struct {
	fake     *fake
	caller   string // with isolation "user", the owner of the session
	level    string // the log level that was set last
	messages chan []byte
	broken   chan *link.CallEnd
	ended    chan struct{}
	end      func(reason error)
	reason   error
}

func (f *fake) dial(_ context.Context, o link.Options) (link.Link, error) {
	if f.starts > 0 { // from the beginning
		<-time.After(f.starts)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dialled = append(f.dialled, time.Now())
	if f.down {
		return nil, &link.Failure{Reason: "down on purpose"}
	}
	l := &fakeLink{fake: f, caller: o.Upstream.Caller, messages: make(chan []byte, 1000), broken: make(chan *link.CallEnd, 10), ended: make(chan struct{})}
	var once sync.Once
	l.end = func(reason error) {
		once.Do(func() {
			l.reason = reason
			close(l.ended)
		})
	}
	f.current = l
	return l, nil
}

// set changes fields of the upstream.
func (f *fake) set(change func(f *fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// get reads one of the values that the upstream changes.
func get[T any](f *fake, value *T) T {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *value
}

// die ends the current connection.
func (f *fake) die() {
	f.mu.Lock()
	l := f.current
	f.mu.Unlock()
	l.end(&link.Failure{Reason: "died on purpose"})
}

// times returns when the upstream was dialled, in seconds after the first time.
func (f *fake) times() (seconds []float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, at := range f.dialled {
		seconds = append(seconds, at.Sub(f.dialled[0]).Seconds())
	}
	return seconds
}

func (l *fakeLink) Send(message []byte) error {
	id := string(rawjson.Get(message, "id"))
	method, _ := rawjson.String(rawjson.Get(message, "method"))
	l.fake.mu.Lock()
	silent, every, takes := l.fake.silent, l.fake.progress, l.fake.takes
	if method == "tools/list" {
		l.fake.listed++
	}
	tool := fmt.Sprintf(`{"name":"t%d"}`, l.fake.listed)
	script := l.fake.script
	l.fake.mu.Unlock()
	if script != nil {
		if done, err := script(l, method, id, message); done {
			return err
		}
	}
	switch {
	case id == "" || silent:
	case method == "ping":
		l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	case method == "initialize":
		l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"capabilities":{"tools":{}}}}`)
	case method == "tools/list":
		l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"tools":[` + tool + `]}}`)
	default:
		for at := every; every > 0 && at < takes; at += every {
			time.AfterFunc(at, func() {
				l.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + id + `,"progress":1}}`)
			})
		}
		time.AfterFunc(takes, func() { l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`) })
	}
	return nil
}

func (l *fakeLink) say(message string) {
	select {
	case l.messages <- []byte(message):
	case <-l.ended:
	}
}

func (l *fakeLink) Run(receive func(link.Delivery)) error {
	for {
		select {
		case m := <-l.messages:
			receive(link.Delivery{Message: m})
		case b := <-l.broken:
			receive(link.Delivery{Err: b})
		case <-l.ended:
			return l.reason
		}
	}
}

func (l *fakeLink) Close() {
	if l.fake.stops > 0 {
		<-time.After(l.fake.stops)
	}
	l.end(errors.New("closed"))
}

// inTime runs a test of a registry with one fake upstream in a synctest bubble, where
// an hour takes no time. The limits are the defaults.
func inTime(t *testing.T, f *fake, test func(t *testing.T, r *Registry), changes ...func(c *config.Upstream)) {
	t.Helper()
	mcptest.NothingLeft(t)
	link.Transports[transportFake] = f.dial
	defer delete(link.Transports, transportFake)
	synctest.Test(t, func(t *testing.T) {
		upstream := config.Upstream{
			Name: "a", Transport: transportFake, StartupTimeout: 30 * time.Second, Timeout: time.Minute, MaxTimeout: 15 * time.Minute,
		}
		for _, change := range changes {
			change(&upstream)
		}
		r := New(&config.Profile{Upstreams: []config.Upstream{upstream}}, Options{Log: f.log, MessageBytes: 1 << 20, ConnectsAtOnce: 2, Cache: f.cache, PingEvery: f.pings})
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
		attempts := len(f.times())
		<-time.After(10 * time.Minute)
		if n := len(f.times()); n != attempts {
			t.Errorf("it was started %d times after the end", n-attempts)
		}
	})
}

// after waits, and then until every goroutine is idle.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// call makes a call for a client, which may be nil, and waits for its end.
func call(ctx context.Context, r *Registry, c upstream.Client) ([]byte, error) {
	return r.Call(ctx, "a", upstream.Request{Method: "tools/call", Meta: []byte("{}"), Client: c})
}

// modernFake returns an upstream of 2026-07-28 that requires input of its client in each
// call.
func modernFake() *fake {
	return &fake{script: func(l *fakeLink, method, id string, message []byte) (bool, error) {
		result := map[string]string{
			"server/discover": `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`,
			"tools/call":      `{"resultType":"input_required","inputRequests":{"one":{"method":"roots/list"}}}`,
		}[method]
		switch {
		case method == "initialize":
			l.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"it was removed"}}`)
		case method == "subscriptions/listen": // it stays open
		case result == "", rawjson.Get(rawjson.Get(message, "params"), "inputResponses") != nil:
			return false, nil
		default:
			l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
		}
		return true, nil
	}}
}

// loggingFake returns an upstream with logging, which stores the level that was set
// last.
func loggingFake(last *string) *fake {
	f := &fake{}
	f.script = func(l *fakeLink, method, id string, message []byte) (bool, error) {
		switch method {
		case "initialize":
			l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"capabilities":{"tools":{},"logging":{}}}}`)
		case "logging/setLevel":
			time.AfterFunc(get(f, &f.takes), func() {
				level, _ := rawjson.String(rawjson.Get(rawjson.Get(message, "params"), "level"))
				f.set(func(*fake) { *last, l.level = level, level })
				l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
			})
		default:
			return false, nil
		}
		return true, nil
	}
	return f
}
