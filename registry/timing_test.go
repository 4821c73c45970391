package registry

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/link"
	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
)

// transportFake is a transport that only the tests of this file have.
const transportFake config.Transport = "fake"

// fake is an upstream inside the test, whose clock is the test's.
type fake struct {
	mu       sync.Mutex
	down     bool        // it cannot be dialled
	silent   bool        // it never answers
	dialled  []time.Time // attempts
	current  *fakeLink
	progress time.Duration // between two notices of a call; 0: none
	takes    time.Duration // to answer a call
	asks     bool          // the client first, as soon as it is called
	starts   time.Duration // to be dialled
	stops    time.Duration // to be closed
	script   script        // what it does otherwise; nil: nothing

	acknowledges time.Duration // how long it takes to listen
	listen       string        // the id of the last request for that
	listens      string        // for what it does

	listed    int // how often its tools were; the one it has is named after that
	pinged    int // how often it was asked for a sign of life
	cancelled int // how often it was told that a call is
}

// script answers a message in a way of its own, or reports that it does not. Its
// error is that of Send.
type script func(l *fakeLink, method, id string, message []byte) (done bool, err error)

// fakeLink is one connection to it.
type fakeLink struct {
	fake     *fake
	messages chan []byte
	broken   chan *link.CallEnd
	ended    chan struct{}
	end      func(reason error)
	reason   error
}

func (f *fake) dial(context.Context, link.Options) (link.Link, error) {
	if f.starts > 0 { // from the beginning
		<-time.After(f.starts)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dialled = append(f.dialled, time.Now())
	if f.down {
		return nil, &link.Failure{Reason: "down on purpose"}
	}
	l := &fakeLink{fake: f, messages: make(chan []byte, 1000), broken: make(chan *link.CallEnd, 10), ended: make(chan struct{})}
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

// set changes the upstream.
func (f *fake) set(change func(f *fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// count is one of the numbers that the upstream keeps.
func (f *fake) count(n *int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *n
}

// die ends the connection there is.
func (f *fake) die() {
	f.mu.Lock()
	l := f.current
	f.mu.Unlock()
	l.end(&link.Failure{Reason: "died on purpose"})
}

// times are the attempts so far, in seconds after the first.
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
	silent, every, takes, asks := l.fake.silent, l.fake.progress, l.fake.takes, l.fake.asks
	switch method {
	case "tools/list":
		l.fake.listed++
	case "ping":
		l.fake.pinged++
	case "notifications/cancelled":
		l.fake.cancelled++
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
	case method == "": // the client's answer, under the id of the call
		time.AfterFunc(takes, func() {
			l.say(`{"jsonrpc":"2.0","id":` + strings.Trim(id, `"`) + `,"result":` + string(rawjson.Get(message, "result")) + `}`)
		})
	case method == "ping":
		l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	case method == "tools/call" && asks:
		l.say(`{"jsonrpc":"2.0","id":"` + id + `","method":"roots/list"}`)
	case method == "initialize":
		l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"capabilities":{"tools":{}}}}`)
	case method == "tools/list":
		l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"tools":[` + tool + `]}}`)
	default:
		go l.answer(id, every, takes)
	}
	return nil
}

// answer answers a call after a while, with progress meanwhile.
func (l *fakeLink) answer(id string, every, takes time.Duration) {
	if every == 0 {
		every = takes + 1
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	done := time.NewTimer(takes)
	defer done.Stop()
	for {
		select {
		case <-tick.C:
			l.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + id + `,"progress":1}}`)
		case <-done.C:
			l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
			return
		case <-l.ended:
			return
		}
	}
}

func (l *fakeLink) say(message string) {
	select {
	case l.messages <- []byte(message):
	case <-l.ended:
	}
}

func (l *fakeLink) Receive() (message, callID []byte, err error) {
	select {
	case m := <-l.messages:
		return m, nil, nil
	case b := <-l.broken:
		return nil, nil, b
	case <-l.ended:
		return nil, nil, l.reason
	}
}

func (l *fakeLink) Close() {
	if l.fake.stops > 0 {
		<-time.After(l.fake.stops)
	}
	l.end(errors.New("closed"))
}

// inTime runs a test of a registry with one fake upstream in a bubble, where an
// hour takes no time. Limits are those of the defaults.
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
		r := New(&config.Profile{Upstreams: []config.Upstream{upstream}}, Options{Log: zerolog.Nop(), MessageBytes: 1 << 20, ConnectsAtOnce: 2})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = r.Run(ctx) })
		synctest.Wait()
		test(t, r)
		cancel()
		wg.Wait()
		if u := r.Catalog().Upstream("a"); u.State != Stopped {
			t.Errorf("it is %s after the end", u.State)
		}
		attempts := len(f.times())
		<-time.After(10 * time.Minute)
		if n := len(f.times()); n != attempts {
			t.Errorf("it was started %d times after the end", n-attempts)
		}
	})
}

// after waits, and then until everybody has done what there was to do.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// modernFake is an upstream of 2026-07-28 that needs its client that many times in a
// call.
func modernFake(rounds int, calls *int) *fake {
	f := &fake{}
	f.script = func(l *fakeLink, method, id string, message []byte) (bool, error) {
		answer := func(result string) { l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`) }
		state, _ := rawjson.String(rawjson.Get(rawjson.Get(message, "params"), "requestState"))
		switch {
		case method == "initialize":
			l.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"it was removed"}}`)
		case method == "server/discover":
			answer(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)
		case method == "subscriptions/listen": // it stays open
			f.mu.Lock()
			takes := f.acknowledges
			f.listen = id
			f.mu.Unlock()
			time.AfterFunc(takes, func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				if f.listen != id {
					return // it was cancelled
				}
				f.listens = string(rawjson.Get(rawjson.Get(message, "params"), "notifications"))
				l.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`)
			})
		case method == "notifications/cancelled": // the end of one ends all, as mcp-go has it
			f.set(func(f *fake) { f.listen, f.listens = "", "" })
		case method == "tools/call" && len(state) < rounds:
			if state == "" {
				f.set(func(*fake) { *calls++ })
			}
			answer(fmt.Sprintf(`{"resultType":"input_required","inputRequests":{"one":{"method":"roots/list"}},"requestState":"%s."}`, state))
		case method == "tools/call" && rounds > 0:
			answer("{}")
		default:
			return false, nil
		}
		return true, nil
	}
	return f
}

// TestModernRoundsAreOneCall: what was begun is not begun again when the upstream
// dies, and is known to be lost at once.
func TestModernRoundsAreOneCall(t *testing.T) {
	for _, c := range []struct {
		name string
		die  func(f *fake, thinks chan struct{})
	}{
		{"while its client thinks", func(f *fake, _ chan struct{}) { f.die() }},
		{"as the next round is sent", func(f *fake, thinks chan struct{}) {
			usual := f.script
			f.set(func(f *fake) {
				f.script = func(l *fakeLink, method, id string, message []byte) (bool, error) {
					if method != "tools/call" {
						return usual(l, method, id, message)
					}
					f.set(func(f *fake) { f.script = usual })
					go f.die()
					return true, jsonrpc.ErrClosed
				}
			})
			close(thinks)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			f := modernFake(1, &calls)
			inTime(t, f, func(t *testing.T, r *Registry) {
				client := newRecorder("one")
				client.hold = make(chan struct{})
				ended := make(chan error, 1)
				go func() {
					_, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: client})
					ended <- err
				}()
				synctest.Wait()
				c.die(f, client.hold)
				synctest.Wait()
				var lost *Lost
				select {
				case err := <-ended:
					if !errors.As(err, &lost) || lost.Reason != "died on purpose" {
						t.Errorf("error %v, want that it was lost", err)
					}
				default:
					t.Error("the call goes on without its session")
					close(client.hold)
					<-ended
				}
				if n := f.count(&calls); n != 1 {
					t.Errorf("the call was made %d times", n)
				}
			})
		})
	}
}

// TestAModernSubscriptionIsMade: a client that is told so misses nothing from then on.
func TestAModernSubscriptionIsMade(t *testing.T) {
	calls := 0
	f := modernFake(0, &calls)
	f.acknowledges = time.Second
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("one")
		r.Attach(c)
		var all sync.WaitGroup
		for _, uri := range []string{"test://one", "test://two"} {
			all.Go(func() {
				if err := r.Subscribe(t.Context(), c, "a", uri, uri); err != nil {
					t.Error(err)
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				if !strings.Contains(f.listens, uri) {
					t.Errorf("%s counts as subscribed to, but the upstream listens for %s", uri, f.listens)
				}
			})
		}
		all.Wait()
		for i := range 100 { // what is heard last is what is wanted
			uri := fmt.Sprint("test://", i)
			if err := r.Subscribe(t.Context(), c, "a", uri, uri); err != nil {
				t.Error(err)
			}
			f.mu.Lock()
			listens := f.listens
			f.mu.Unlock()
			if !strings.Contains(listens, uri) {
				t.Fatalf("%s counts as subscribed to, but the upstream listens for %q", uri, listens)
			}
		}
		time.AfterFunc(f.acknowledges/2, f.die)
		if err := r.Subscribe(t.Context(), c, "a", "test://dead", "test://dead"); err != nil {
			t.Errorf("while the upstream dies: %v", err)
		}
		f.set(func(f *fake) { f.acknowledges = time.Hour })
		begin := time.Now()
		if err := r.Subscribe(t.Context(), c, "a", "test://slow", "test://slow"); err != nil || time.Since(begin) != listenTime {
			t.Errorf("an upstream that does not say so was waited for for %s, %v", time.Since(begin), err)
		}
	})
}

// TestListsAfterAModernStreamBroke: what changed while nobody listened is looked for.
func TestListsAfterAModernStreamBroke(t *testing.T) {
	calls := 0
	f := modernFake(0, &calls)
	inTime(t, f, func(t *testing.T, r *Registry) {
		after(time.Minute)
		if n := f.count(&f.listed); n != 1 {
			t.Errorf("its tools were listed %d times while it listens", n)
		}
		f.mu.Lock()
		id := f.listen
		f.mu.Unlock()
		f.current.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
		after(relistenPause)
		if n := f.count(&f.listed); n != 2 || r.Catalog().Upstream("a").Tool("t2") == nil {
			t.Errorf("its tools were listed %d times, want once more after the stream broke", n)
		}
		usual := f.script
		f.set(func(f *fake) {
			f.script = func(l *fakeLink, method, id string, message []byte) (bool, error) {
				if method != "subscriptions/listen" {
					return usual(l, method, id, message)
				}
				l.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"not any more"}}`)
				return true, nil
			}
			id = f.listen
		})
		f.current.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
		after(10 * relistenPause)
		if n := f.count(&f.listed); n != 2 {
			t.Errorf("its tools were listed %d times, want no more while it does not listen", n)
		}
	})
}

// TestModernRoundsHaveOneLimit: the limit of a call in all is not that of a round.
func TestModernRoundsHaveOneLimit(t *testing.T) {
	calls := 0
	inTime(t, modernFake(3, &calls), func(t *testing.T, r *Registry) {
		begin := time.Now()
		_, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: slowClient{newRecorder("one"), 8 * time.Minute}})
		var late *Timeout
		if took := time.Since(begin); took != 15*time.Minute || !errors.As(err, &late) || late.Key != "max_timeout" {
			t.Errorf("it ended after %s: %v", took, err)
		}
	})
}

// slowClient takes its time for each answer.
type slowClient struct {
	*recorder
	takes time.Duration
}

func (c slowClient) Request(ctx context.Context, method string, params []byte) ([]byte, error) {
	select {
	case <-time.After(c.takes):
		return c.recorder.Request(ctx, method, params)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TestACallThatWasNotSent: the link accepts a call, and finds out later that it cannot
// send it. The call is then made over the next session, as Call does it.
func TestACallThatWasNotSent(t *testing.T) {
	calls := 0
	f := &fake{script: func(l *fakeLink, method, id string, _ []byte) (bool, error) {
		if method != "tools/call" {
			return false, nil
		}
		if calls++; calls > 1 {
			return false, nil
		}
		l.broken <- &link.CallEnd{ID: []byte(id), Outcome: link.NotSent}
		time.AfterFunc(time.Second, func() { l.end(&link.Failure{Reason: "unreachable"}) })
		return true, nil
	}}
	inTime(t, f, func(t *testing.T, r *Registry) {
		_, err := jsonrpc.Wait(func(done jsonrpc.Done) {
			r.Send(t.Context(), "a", Request{Method: "tools/call", Client: newRecorder("A")}, done)
		})
		if err != nil || calls != 2 {
			t.Errorf("%v after %d calls", err, calls)
		}
	})
}

func TestAnUpstreamThatNeverStarts(t *testing.T) {
	f := &fake{down: true}
	inTime(t, f, func(t *testing.T, _ *Registry) {
		after(200 * time.Second)
		got := f.times()
		least, most := 0.0, 0.0
		for i, wait := range []float64{0, 1, 2, 4, 8, 16, 32, 60} { // each may be a fifth shorter
			least, most = least+wait*0.8, most+wait
			if i >= len(got) || got[i] < least || got[i] > most+0.001 {
				t.Fatalf("attempt %d of %v, want one between %g and %g", i, got, least, most)
			}
		}
	})
}

func TestAHealthyUpstreamIsStartedAgainAtOnce(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		ready := func() bool { return r.Catalog().Upstream("a").State == Ready }
		after(10 * time.Second)
		f.die()
		after(0)
		if !ready() || len(f.times()) != 2 {
			t.Errorf("after the first death: ready %v, attempts at %v", ready(), f.times())
		}
		f.die()
		after(700 * time.Millisecond)
		if u := r.Catalog().Upstream("a"); u.State != Waiting || u.Reason != "died on purpose" {
			t.Errorf("after the second death it is %s (%s), want it to wait", u.State, u.Reason)
		}
		after(300 * time.Millisecond)
		if !ready() {
			t.Error("it does not come back within a second")
		}
		after(time.Minute) // of health, which forgives everything
		f.die()
		after(0)
		if !ready() {
			t.Error("after a minute of health it is not started again at once")
		}
	})
}

func TestACallStartsAWaitingUpstreamAfterTheGrace(t *testing.T) {
	f := &fake{down: true}
	inTime(t, f, func(t *testing.T, r *Registry) {
		after(20 * time.Second) // attempts at about 0, 1, 3, 7 and 15
		u := r.Catalog().Upstream("a")
		after(time.Until(u.RetryAt)) // the next attempt fails now
		f.set(func(f *fake) { f.down = false })
		attempts := len(f.times())
		after(900 * time.Millisecond)
		_, err := r.Call(t.Context(), "a", Request{Method: "tools/call"})
		var none *Unavailable
		if !errors.As(err, &none) || none.Reason != "down on purpose" || len(f.times()) != attempts {
			t.Errorf("a call within the grace: %v, attempts at %v", err, f.times())
		}
		after(200 * time.Millisecond)
		begin := time.Now()
		if _, err := r.Call(t.Context(), "a", Request{Method: "tools/call"}); err != nil || len(f.times()) != attempts+1 {
			t.Errorf("a call after the grace: %v, attempts at %v", err, f.times())
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("the call waited %s, want it to cut the wait short", waited)
		}
	})
}

// TestACallWaitsNoLongerThanAStart: many upstreams hang at their start and take
// long to stop. A call to any of them waits for the start-up limit at most, though
// the starts wait for each other.
func TestACallWaitsNoLongerThanAStart(t *testing.T) {
	f := &fake{silent: true, stops: 4 * time.Second}
	link.Transports[transportFake] = f.dial
	defer delete(link.Transports, transportFake)
	const limit = 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		p := &config.Profile{}
		for i := range 20 {
			isolation := config.Shared
			if i%2 == 1 {
				isolation = config.PerClient
			}
			p.Upstreams = append(p.Upstreams, config.Upstream{Name: fmt.Sprint("u", i), Transport: transportFake, StartupTimeout: limit, Timeout: time.Minute, Isolation: isolation})
		}
		r := New(p, Options{Log: zerolog.Nop(), MessageBytes: 1 << 20, ConnectsAtOnce: 2})
		ctx, cancel := context.WithCancel(t.Context())
		var running, calls sync.WaitGroup
		running.Go(func() { _ = r.Run(ctx) })
		for range 8 { // some during the first start, some during a stop or a later start
			for _, u := range p.Upstreams {
				calls.Go(func() {
					begin := time.Now()
					_, err := r.Call(t.Context(), u.Name, Request{Method: "tools/call", Client: newRecorder("one")})
					var unavailable *Unavailable
					if took := time.Since(begin); took > limit || !errors.As(err, &unavailable) {
						t.Errorf("%s: %v after %s", u.Name, err, took)
					}
				})
			}
			after(1500 * time.Millisecond)
		}
		calls.Wait()
		// What a call waited before it came here counts, too.
		begin := time.Now()
		_, _ = r.Call(t.Context(), "u0", Request{Method: "tools/call", Begun: begin.Add(-4 * time.Second)})
		if took := time.Since(begin); took > limit-4*time.Second {
			t.Errorf("a call that came 4 s ago waited for another %s", took)
		}
		cancel()
		running.Wait()
	})
}

func TestTheStartupLimit(t *testing.T) {
	f := &fake{silent: true}
	inTime(t, f, func(t *testing.T, r *Registry) {
		after(30*time.Second - time.Millisecond)
		if u := r.Catalog().Upstream("a"); u.State != Starting {
			t.Errorf("before its limit it is %s (%s)", u.State, u.Reason)
		}
		after(2 * time.Millisecond)
		if u := r.Catalog().Upstream("a"); u.State != Waiting || u.Reason != `not ready within 30s (its "startup_timeout")` {
			t.Errorf("after its limit it is %s (%s)", u.State, u.Reason)
		}
	})
}

// TestTheLimitsOfACall: an idle call ends after a minute, one with progress after a
// quarter of an hour, and not a moment earlier.
func TestTheLimitsOfACall(t *testing.T) {
	for _, c := range []struct {
		name            string
		progress, takes time.Duration
		want            time.Duration
		err             string
	}{
		{"just in time", 0, time.Minute - 1, time.Minute - 1, ""},
		{"idle", 0, time.Hour, time.Minute, `server "a": timed out: no answer and no progress within 1m0s (its "timeout"); the call was cancelled`},
		{"progress", 59 * time.Second, 10 * time.Minute, 10 * time.Minute, ""},
		{"progress that is too rare", 61 * time.Second, 10 * time.Minute, time.Minute, `(its "timeout")`},
		{"progress forever", 10 * time.Second, time.Hour, 15 * time.Minute, `server "a": timed out: no answer within 15m0s (its "max_timeout"); the call was cancelled`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{progress: c.progress, takes: c.takes}
			inTime(t, f, func(t *testing.T, r *Registry) {
				begin := time.Now()
				_, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Meta: []byte("{}")})
				if took := time.Since(begin); took != c.want {
					t.Errorf("it took %s, want %s", took, c.want)
				}
				if got := fmt.Sprint(err); c.err == "" && err != nil || !strings.Contains(got, c.err) {
					t.Errorf("error %v, want %s", err, c.err)
				}
				synctest.Wait()
				if told := f.count(&f.cancelled); (told == 1) != (c.err != "") || told > 1 {
					t.Errorf("it was told %d times that the call is cancelled", told)
				}
			})
		})
	}
}

// TestAThinkingClientKeepsTheCallAlive: while a client is asked, the time is its
// own.
func TestAThinkingClientKeepsTheCallAlive(t *testing.T) {
	const takes = 59 * time.Second // the upstream, once it has its answer; an idle call has a minute
	for _, thinks := range []time.Duration{time.Second, 59 * time.Second, time.Minute, 10 * time.Minute} {
		f := &fake{asks: true, takes: takes}
		inTime(t, f, func(t *testing.T, r *Registry) {
			c := newRecorder("one")
			c.hold = make(chan struct{})
			time.AfterFunc(thinks, func() { close(c.hold) })
			begin := time.Now()
			got, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c})
			if err != nil || string(got) != `{"from":"one"}` || time.Since(begin) != thinks+takes {
				t.Errorf("thinks for %s: got %s, %v, after %s", thinks, got, err, time.Since(begin))
			}
		})
	}
}

// TestAQuestionOfAnotherCall: the client that was asked has no call any more. The
// incoming then goes to the client whose call was in flight when it came, whose limit
// rests meanwhile, and never to a client that came later.
func TestAQuestionOfAnotherCall(t *testing.T) {
	for _, comesLater := range []bool{false, true} {
		replies := make(chan string, 10)
		f := silentFake(replies)
		inTime(t, f, func(t *testing.T, r *Registry) {
			thinking, over, last := newRecorder("thinking"), overClient{newRecorder("over"), make(chan struct{})}, newRecorder("last")
			thinking.owner, thinking.hold = "a sender without a session", make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			call := func(c Client) (id int64) {
				calls.Go(func() {
					_, _ = r.Call(ctx, "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c})
				})
				synctest.Wait()
				return lastCall(r)
			}
			ask := func(id string) {
				f.current.say(`{"jsonrpc":"2.0","id":"` + id + `","method":"roots/list"}`)
				synctest.Wait()
			}
			if !comesLater {
				call(thinking)
				ask("q1") // it is thinking about this when the next incoming comes
			}
			id := call(over)
			ask("q2")
			if comesLater {
				call(last)
			}
			f.current.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id))
			synctest.Wait()
			close(over.over)
			synctest.Wait()
			if comesLater {
				if got := <-replies; !strings.Contains(got, "the call is over") || len(last.asked) > 0 {
					t.Errorf("the upstream got %s, the client that came later was asked %q", got, last.asked)
				}
			} else {
				after(3 * time.Minute) // longer than an idle call may take
				close(thinking.hold)
				for range 2 {
					if got := <-replies; !strings.Contains(got, `{"from":"thinking"}`) {
						t.Errorf("the upstream got %s", got)
					}
				}
			}
			cancel()
			calls.Wait()
		})
	}
}

// overClient says that its call is over when it is.
type overClient struct {
	*recorder
	over chan struct{}
}

func (c overClient) Request(context.Context, string, []byte) ([]byte, error) {
	<-c.over
	return nil, ErrCallOver
}

// TestAQuestionEndsWithItsCalls: what an upstream asks, and does not withdraw, is
// withdrawn when every call that may be its cause was given up.
func TestAQuestionEndsWithItsCalls(t *testing.T) {
	f := &fake{asks: true}
	inTime(t, f, func(t *testing.T, r *Registry) {
		c := newRecorder("one")
		c.hold = make(chan struct{})
		call := func() (cancel func()) {
			ctx, stop := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			var ended sync.WaitGroup
			ended.Go(func() {
				if _, err := r.Call(ctx, "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c}); !errors.Is(err, enough) {
					t.Errorf("the call ends with %v", err)
				}
			})
			after(0)
			return func() {
				stop(enough)
				ended.Wait()
				after(0)
			}
		}
		waiting := func() int {
			return r.Catalog().Upstream("a").session.conn.Incoming()
		}
		first, second := call(), call()
		for i, cancel := range []func(){func() {}, first, second} {
			cancel()
			if got, want := waiting(), 2-i; got != want { // the second incoming may be of either call
				t.Errorf("%d calls given up: %d questions wait, want %d", i, got, want)
			}
		}
	})
}

// TestPingsAreForIdleSessions: during a call the upstream is not asked for a sign
// of life.
func TestPingsAreForIdleSessions(t *testing.T) {
	f := &fake{progress: 10 * time.Second, takes: 10 * time.Minute}
	inTime(t, f, func(t *testing.T, r *Registry) {
		after(3*pingEvery + time.Second)
		if n := f.count(&f.pinged); n != 3 {
			t.Errorf("an idle session was asked %d times, want 3", n)
		}
		if _, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Meta: []byte("{}")}); err != nil {
			t.Error(err)
		}
		if n := f.count(&f.pinged); n != 3 {
			t.Errorf("it was asked %d times during a call", n-3)
		}
		after(pingEvery)
		if n := f.count(&f.pinged); n != 4 {
			t.Errorf("it was asked %d times in all, want once more after the call", n)
		}
		if times := f.times(); len(times) != 1 {
			t.Errorf("it was started at %v, though it answers", times)
		}
	})
}

// TestACallAfterAPing: an upstream that does one thing at a time may take a call
// before the ping that was sent first, and is not dead while it is at it.
func TestACallAfterAPing(t *testing.T) {
	f := &fake{takes: 50 * time.Second}
	inTime(t, f, func(t *testing.T, r *Registry) {
		f.set(func(f *fake) {
			f.script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) { return method == "ping", nil }
		})
		after(pingEvery)
		if _, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Meta: []byte("{}")}); err != nil {
			t.Error(err)
		}
		after(3 * pingEvery) // it answers no ping now either, with nothing to do
		if times := f.times(); len(times) != 2 {
			t.Errorf("it was started at %v, want its end to be noticed", times)
		}
	})
}

// TestAPassingClientsSessionHasItsWhile: that begins when its last call is over.
func TestAPassingClientsSessionHasItsWhile(t *testing.T) {
	calls := 0
	for _, c := range []struct {
		name   string
		f      *fake
		dialed int // for a call, 50 s, a call, and the session's end
	}{
		{"a short call", &fake{}, 2},
		{"a call of nearly a minute", &fake{takes: sessionlessIdle - time.Second}, 2},
		{"a slow start", &fake{starts: sessionlessIdle + 10*time.Second}, 2},
		{"a stream that stays open", modernFake(0, &calls), 4}, // each is met in the old way first
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, c.f, func(t *testing.T, r *Registry) {
				for i := range 2 {
					client := newRecorder(fmt.Sprint("call ", i))
					client.owner = "sender"
					if _, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: client}); err != nil {
						t.Error(err)
					}
					after(sessionlessIdle - 10*time.Second)
				}
				if n := len(c.f.times()); n != c.dialed {
					t.Errorf("it was dialled %d times, want %d", n, c.dialed)
				}
				after(11 * time.Second)
				r.sessions.mu.Lock()
				defer r.sessions.mu.Unlock()
				if n := len(r.sessions.byKey); n != 0 {
					t.Errorf("%d sessions are left", n)
				}
			}, func(c *config.Upstream) { c.Isolation, c.StartupTimeout = config.PerClient, 5*time.Minute })
		})
	}
}

// TestOwnSessionsDoNotNeedTheSharedOne: while the shared session is down, a client
// goes on with its own session, and another one opens its own as soon as the
// upstream can be reached again. Calls in a row do not dial over and over.
func TestOwnSessionsDoNotNeedTheSharedOne(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		shared := f.current
		call := func(c Client) error {
			_, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c})
			return err
		}
		one, two := newRecorder("one"), newRecorder("two")
		r.Attach(one)
		r.Attach(two)
		if err := call(one); err != nil {
			t.Fatal(err)
		}
		f.set(func(f *fake) { f.down = true })
		shared.end(&link.Failure{Reason: "died on purpose"})
		after(0)
		if err := call(one); err != nil {
			t.Errorf("with a session of its own: %v", err)
		}
		dialled := len(f.times())
		var unavailable *Unavailable
		for range 10 {
			if err := call(two); !errors.As(err, &unavailable) {
				t.Errorf("without one: %v", err)
			}
		}
		if n := len(f.times()) - dialled; n != 1 {
			t.Errorf("10 calls in a row dialled %d times", n)
		}
		f.set(func(f *fake) { f.down = false })
		f.mu.Lock()
		f.dialled = f.dialled[:0]
		f.mu.Unlock()
		<-time.After(retryGrace)
		if err := call(two); err != nil {
			t.Errorf("once it can be reached: %v", err)
		}
	}, func(c *config.Upstream) { c.Isolation = config.PerClient })
}

// TestASubscriptionAtTheStart: what was asked of the new session already is not asked
// of it again, as what was asked of the one before is.
func TestASubscriptionAtTheStart(t *testing.T) {
	for i := range 300 {
		asked := 0
		f := &fake{starts: time.Second}
		f.script = func(_ *fakeLink, method, _ string, _ []byte) (bool, error) {
			if method == "resources/subscribe" {
				f.set(func(*fake) { asked++ })
			}
			return false, nil
		}
		inTime(t, f, func(t *testing.T, r *Registry) {
			c := newRecorder("one")
			r.Attach(c)
			if err := r.Subscribe(t.Context(), c, "a", "test://one", "test://one"); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if n := f.count(&asked); n != 1 {
				t.Errorf("time %d: the upstream was asked %d times", i, n)
			}
			f.die()
			after(time.Second)
			if n := f.count(&asked); n != 2 {
				t.Errorf("time %d: the upstream was asked %d times in all after a restart, want 2", i, n)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// loggingFake is an upstream with logging, which keeps the last level that it was told.
func loggingFake(last *string) *fake {
	f := &fake{}
	f.script = func(l *fakeLink, method, id string, message []byte) (bool, error) {
		switch method {
		case "initialize":
			l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{"capabilities":{"tools":{},"logging":{}}}}`)
		case "logging/setLevel":
			f.set(func(*fake) { *last, _ = rawjson.String(rawjson.Get(rawjson.Get(message, "params"), "level")) })
			l.say(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
		default:
			return false, nil
		}
		return true, nil
	}
	return f
}

// TestALevelWhileASessionOpens: a client's own session hears of what is set while
// it is opened.
func TestALevelWhileASessionOpens(t *testing.T) {
	last := ""
	f := loggingFake(&last)
	inTime(t, f, func(t *testing.T, r *Registry) {
		for i := range 3000 {
			c := newRecorder(fmt.Sprint(i))
			r.Attach(c)
			r.SetLevel(c, "error")
			var both sync.WaitGroup
			both.Go(func() {
				if _, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Meta: []byte("{}"), Client: c}); err != nil {
					t.Error(err)
				}
			})
			both.Go(func() {
				for range i % 400 { // about what it takes to open it
					runtime.Gosched()
				}
				r.SetLevel(c, "debug")
			})
			both.Wait()
			synctest.Wait()
			for _, s := range r.sessions.of("a") {
				if got := *s.level.Load(); got != "debug" {
					t.Fatalf("time %d: its session is left with %s", i, got)
				}
			}
			r.Detach(t.Context(), c)
			synctest.Wait()
		}
	}, func(c *config.Upstream) { c.Isolation = config.PerClient })
}

// TestLevelsOfTwoClients: when two set theirs in the same moment, the upstream's last
// word is what both want.
func TestLevelsOfTwoClients(t *testing.T) {
	last := ""
	f := loggingFake(&last)
	inTime(t, f, func(t *testing.T, r *Registry) {
		one, two := newRecorder("one"), newRecorder("two")
		r.Attach(one)
		r.Attach(two)
		for i := range 3000 {
			r.SetLevel(one, "error")
			r.SetLevel(two, "error")
			var both sync.WaitGroup
			both.Go(func() { r.SetLevel(one, "info") })
			both.Go(func() { r.SetLevel(two, "debug") })
			both.Wait()
			f.mu.Lock()
			got := last
			f.mu.Unlock()
			if got != "debug" {
				t.Fatalf("time %d: the upstream is left with %s", i, got)
			}
		}
	})
}

// TestASilentSessionEnds: it is asked when it is idle, and has as long to answer.
func TestASilentSessionEnds(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		after(pingEvery + time.Second)
		u := r.Catalog().Upstream("a")
		f.set(func(f *fake) { f.silent, f.down = true, true })
		after(2*pingEvery - 2*time.Second)
		if now := r.Catalog().Upstream("a"); now != u {
			t.Errorf("before its time is over it is %s (%s)", now.State, now.Reason)
		}
		after(time.Second)
		if dialled := f.times(); len(dialled) != 2 || dialled[1] != 3*pingEvery.Seconds() {
			t.Errorf("it was started at %v, want its end to be noticed", dialled)
		}
	})
}

// TestAShutdownStartsNothing ends the registry while the upstream waits for its
// next start; inTime looks whether that comes.
func TestAShutdownStartsNothing(t *testing.T) {
	f := &fake{down: true}
	inTime(t, f, func(t *testing.T, r *Registry) {
		after(4 * time.Second)
		if u := r.Catalog().Upstream("a"); u.State != Waiting {
			t.Errorf("it is %s", u.State)
		}
		f.set(func(f *fake) { f.down = false })
	})
}

// TestAListThatFailsIsTriedAgain: an upstream tells of a change once, also when it
// cannot be asked what has changed.
func TestAListThatFailsIsTriedAgain(t *testing.T) {
	f := &fake{}
	inTime(t, f, func(t *testing.T, r *Registry) {
		f.set(func(f *fake) {
			f.script = func(l *fakeLink, method, id string, _ []byte) (bool, error) {
				if method == "tools/list" {
					l.say(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"not now"}}`)
				}
				return method == "tools/list", nil
			}
		})
		f.current.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		after(relistTime)
		if n := f.count(&f.listed); n != 3 {
			t.Errorf("it was asked for its tools %d times in %s, want 3", n, relistTime)
		}
		f.set(func(f *fake) { f.script = nil })
		after(relistTime)
		if tools := r.Catalog().Upstream("a").Tools; len(tools) != 1 || tools[0].Name != "t4" {
			t.Errorf("its tools are %+v, want the fourth list", tools)
		}
		after(time.Hour)
		if n := f.count(&f.listed); n != 4 {
			t.Errorf("it was asked for its tools %d times in all, want 4", n)
		}
	})
}

// TestTheEndOfASessionWhenMcpxStops: a call that finds its session closed does not
// wait for another one after mcpx has stopped.
func TestTheEndOfASessionWhenMcpxStops(t *testing.T) {
	link.Transports[transportFake] = (&fake{}).dial
	defer delete(link.Transports, transportFake)
	synctest.Test(t, func(t *testing.T) {
		upstream := config.Upstream{Name: "a", Transport: transportFake, StartupTimeout: 30 * time.Second}
		r := New(&config.Profile{Upstreams: []config.Upstream{upstream}}, Options{Log: zerolog.Nop(), MessageBytes: 1 << 20, ConnectsAtOnce: 2})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = r.Run(ctx) })
		synctest.Wait()
		session := r.Catalog().Upstream("a").session
		cancel()
		wg.Wait()
		limited, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := r.waitForEnd(limited, session); err != nil {
			t.Errorf("it waits in vain: %v", err)
		}
	})
}
