// Package registrytest has a fake upstream for the tests of registry and registry/live.
package registrytest

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
	"mcpx/internal/listcache"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/link"
	"mcpx/registry/lists"
)

// Transport is the transport of the fake upstream.
const Transport config.Transport = "fake"

// Fake is an upstream inside the test, which uses the test's clock.
type Fake struct {
	Mu       sync.Mutex
	Down     bool        // dialing fails
	Silent   bool        // it never responds
	Dialed   []time.Time // when it was dialed
	Current  *Link
	Progress time.Duration    // between two progress notifications of a call; 0: none
	Takes    time.Duration    // until it responds to a call
	Starts   time.Duration    // until it is dialed
	Stops    time.Duration    // until it is closed
	Script   Script           // handles messages first; may be nil
	Cache    *listcache.Cache // of the registry; may be nil
	Pings    time.Duration    // between two pings of the registry; 0: the default
	Log      zerolog.Logger   // of the registry

	Views func(u *config.Upstream) lists.Views // of the registry; may be nil

	Listed int // number of tools/list; its tool is named after it
}

// Say sends a message to mcpx, and waits until it is handled.
func (f *Fake) Say(format string, args ...any) {
	f.Current.Say(fmt.Sprintf(format, args...))
	synctest.Wait()
}

// Script handles a message that was sent to the upstream; done is false for messages
// that it leaves to the fake. Send returns its error.
type Script func(l *Link, method, id string, message []byte) (done bool, err error)

// Link is one connection to a fake.
type Link struct {
	fake     *Fake
	Caller   string // with isolation "user", the owner of the session
	Level    string // the log level that was set last
	messages chan []byte
	Broken   chan *link.CallEnd
	Ended    chan struct{}
	End      func(reason error)
	reason   error
}

// Dial opens a connection, as a link.Dialer does.
func (f *Fake) Dial(_ context.Context, o link.Options) (link.Link, error) {
	if f.Starts > 0 { // from the beginning
		<-time.After(f.Starts)
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.Dialed = append(f.Dialed, time.Now())
	if f.Down {
		return nil, &link.Failure{Reason: "down on purpose"}
	}
	l := &Link{fake: f, Caller: o.Upstream.Caller, messages: make(chan []byte, 1000), Broken: make(chan *link.CallEnd, 10), Ended: make(chan struct{})}
	var once sync.Once
	l.End = func(reason error) {
		once.Do(func() {
			l.reason = reason
			close(l.Ended)
		})
	}
	f.Current = l
	return l, nil
}

// Set changes fields of the upstream.
func (f *Fake) Set(change func(f *Fake)) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	change(f)
}

// Get reads one of the values that the upstream changes.
func Get[T any](f *Fake, value *T) T {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return *value
}

// Die ends the current connection.
func (f *Fake) Die() {
	f.Mu.Lock()
	l := f.Current
	f.Mu.Unlock()
	l.End(&link.Failure{Reason: "died on purpose"})
}

// Times returns when the upstream was dialed, in seconds after the first time.
func (f *Fake) Times() (seconds []float64) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, at := range f.Dialed {
		seconds = append(seconds, at.Sub(f.Dialed[0]).Seconds())
	}
	return seconds
}

// Send handles a message of mcpx.
func (l *Link) Send(message []byte) error {
	id := string(rawjson.Get(message, "id"))
	method := rawjson.GetString(message, "method")
	l.fake.Mu.Lock()
	silent, every, takes := l.fake.Silent, l.fake.Progress, l.fake.Takes
	if method == "tools/list" {
		l.fake.Listed++
	}
	tool := fmt.Sprintf(`{"name":"t%d"}`, l.fake.Listed)
	script := l.fake.Script
	l.fake.Mu.Unlock()
	if script != nil {
		if done, err := script(l, method, id, message); done {
			return err
		}
	}
	switch {
	case id == "" || silent:
	case method == "ping":
		l.Say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	case method == "initialize":
		l.Say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"capabilities":{"tools":{}}}}`)
	case method == "tools/list":
		l.Say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"tools":[` + tool + `]}}`)
	default:
		for at := every; every > 0 && at < takes; at += every {
			time.AfterFunc(at, func() {
				l.Say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + id + `,"progress":1}}`)
			})
		}
		time.AfterFunc(takes, func() { l.Say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`) })
	}
	return nil
}

// Say sends a message to mcpx.
func (l *Link) Say(message string) {
	select {
	case l.messages <- []byte(message):
	case <-l.Ended:
	}
}

// Run passes messages on until the connection ends.
func (l *Link) Run(receive func(link.Delivery)) error {
	for {
		select {
		case m := <-l.messages:
			receive(link.Delivery{Line: rpc.Line{Text: m}})
		case b := <-l.Broken:
			receive(link.Delivery{Err: b})
		case <-l.Ended:
			return l.reason
		}
	}
}

// Close ends the connection.
func (l *Link) Close() {
	if l.fake.Stops > 0 {
		<-time.After(l.fake.Stops)
	}
	l.End(errors.New("closed"))
}

// Never is an interval that does not end in a test. A process gets no pings.
const Never = 1000 * time.Hour

// Profile returns a profile with the fake upstream "a", changed in some ways. Its limits are
// the defaults.
func Profile(changes ...func(u *config.Upstream)) *config.Profile {
	u := config.Upstream{
		Name: "a", Transport: Transport, StartupTimeout: 30 * time.Second, Timeout: time.Minute, MaxTimeout: 15 * time.Minute,
	}
	for _, change := range changes {
		change(&u)
	}
	return &config.Profile{Upstreams: []config.Upstream{u}}
}

// InTime runs a test in a synctest bubble, where an hour takes no time. After the test, nothing
// may start the upstream.
func (f *Fake) InTime(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	link.Transports[Transport] = f.Dial
	defer delete(link.Transports, Transport)
	synctest.Test(t, func(t *testing.T) {
		test(t)
		attempts := len(f.Times())
		<-time.After(10 * time.Minute)
		if n := len(f.Times()); n != attempts {
			t.Errorf("it was started %d times after the end", n-attempts)
		}
	})
}

// After waits, and then until every goroutine is idle.
func After(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// New2026 returns an upstream of 2026-07-28 that requires input of its client in each
// call.
func New2026() *Fake {
	return &Fake{Script: func(l *Link, method, id string, message []byte) (bool, error) {
		result := map[string]string{
			"server/discover": `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`,
			"tools/call":      `{"resultType":"input_required","inputRequests":{"one":{"method":"roots/list"}}}`,
		}[method]
		switch {
		case method == "initialize":
			l.Say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"it was removed"}}`)
		case method == "subscriptions/listen": // it stays open
		case result == "", rawjson.Get(rawjson.Get(message, "params"), "inputResponses") != nil:
			return false, nil
		default:
			l.Say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`)
		}
		return true, nil
	}}
}
