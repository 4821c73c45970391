package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/upstream"
)

func TestModernUpstream(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-modern", "-full")})
	u := r.Settled(t.Context(), "a")
	if u.State != Ready || u.Instructions != "the new way" || u.Tool("echo") == nil || len(u.Resources) == 0 {
		t.Fatalf("%s %q %q, %d tools, %d resources", u.State, u.Reason, u.Instructions, len(u.Tools), len(u.Resources))
	}
	one := newRecorder("one")
	r.Attach(one)
	if got, err := callAs(t, r, one, "echo", `{"text":"hi"}`); err != nil || got != "hi" {
		t.Errorf("got %q, %v", got, err)
	}

	got, err := callAs(t, r, one, "ask", `{"method":"sampling/createMessage","params":{"temperature":0}}`)
	if want := `state 1 {"one":{"from":"one"}}`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	one.wait(t, `sampling/createMessage {"temperature":0}`)
	if _, err := callAs(t, r, one, "ask", `{"method":"elicitation/create"}`); err == nil || !strings.Contains(err.Error(), "User rejected") {
		t.Errorf("error %v, want the client's own", err)
	}
	if _, err := callAs(t, r, nil, "ask", `{"method":"roots/list"}`); err == nil {
		t.Error("a call of mcpx's own was asked for a client's input")
	}

	l.wait(t, `listen {\"notifications\":{\"toolsListChanged\":true,\"resourcesListChanged\":true}}`)
	if err := r.Subscribe(t.Context(), one, "a", "test://one", "known://one"); err != nil {
		t.Fatal(err)
	}
	l.wait(t, `\"resourceSubscriptions\":[\"test://one\"]`)
	mustCall(t, r, "a", "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one","_meta":{"io.modelcontextprotocol/subscriptionId":5,"x":1}}]}`)
	if got, want := one.heard("notifications/resources/updated"), []string{`{"uri":"known://one","_meta":{"x":1}}`}; !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
	mustCall(t, r, "a", "change", `{"notices":1}`)
	l.wait(t, "list changed")
}

// inputRecorder is a recorder with capabilities.
type inputRecorder struct {
	*recorder
	capabilities string
	revision     string
}

func (c inputRecorder) Capabilities() []byte { return []byte(c.capabilities) }

func (c inputRecorder) Revision() string { return c.revision }

func (c inputRecorder) RequestAll(ctx context.Context, inputs []Input) ([][]byte, error) {
	return upstream.RequestEach(ctx, c, inputs)
}

func TestModernRequestsCarryMeta(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t, "-modern")})
	one := inputRecorder{newRecorder("one"), `{"sampling":{"tools":{}},"roots":null,"tasks":{},"extensions":{"x/y":{}}}`, "2025-11-25"}
	r.Attach(one)
	r.SetLevel(one, "warning")
	result, err := r.Call(t.Context(), "a", Request{
		Method: "tools/call", Params: []byte(`{"name":"params","arguments":{}}`), Client: one,
		Meta: []byte(`{"trace":1,"io.modelcontextprotocol/protocolVersion":"1999-01-01"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	for item := range rawjson.Elements(rawjson.Get(result, "content")) {
		params, _ := rawjson.String(rawjson.Get(item, "text"))
		meta := rawjson.Get([]byte(params), "_meta")
		for key, want := range map[string]string{
			"trace": "1",
			"io.modelcontextprotocol/protocolVersion": `"2026-07-28"`,
			"io.modelcontextprotocol/logLevel":        `"warning"`,
			"io.modelcontextprotocol/clientInfo":      `{"name":"mcpx","version":"1.2.3"}`,

			"io.modelcontextprotocol/clientCapabilities": `{"sampling":{"tools":{}}}`,
		} {
			if got := string(rawjson.Get(meta, key)); got != want {
				t.Errorf("%s is %s, want %s", key, got, want)
			}
		}
	}
}

// TestModernRoundsAreOneCall: if the upstream dies between rounds, the call is lost at
// once and is not sent again.
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
					return true, rpc.ErrClosed
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
				_, cancel := begin(t, f, r, client)
				c.die(f, client.hold)
				synctest.Wait()
				var lost *upstream.Lost // and not errEnough, which comes too late
				if err := cancel(); !errors.As(err, &lost) || lost.Reason != "died on purpose" {
					t.Errorf("error %v, want that it was lost", err)
				}
				if n := get(f, &calls); n != 1 {
					t.Errorf("the call was made %d times", n)
				}
			})
		})
	}
}

// TestModernRoundsHaveOneLimit: max_timeout covers all rounds of a call together.
func TestModernRoundsHaveOneLimit(t *testing.T) {
	calls := 0
	inTime(t, modernFake(3, &calls), func(t *testing.T, r *Registry) {
		begin := time.Now()
		_, err := call(t.Context(), r, slowClient{newRecorder("one"), 8 * time.Minute})
		var late *upstream.Timeout
		if took := time.Since(begin); took != 15*time.Minute || !errors.As(err, &late) || late.Key != "max_timeout" {
			t.Errorf("it ended after %s: %v", took, err)
		}
	})
}

// slowClient waits before each response.
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

// TestModernSubscribeWaitsForTheUpstream: Subscribe returns once the upstream has
// acknowledged the new filter, so no update is missed.
func TestModernSubscribeWaitsForTheUpstream(t *testing.T) {
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
				if listens := get(f, &f.listens); !strings.Contains(listens, uri) {
					t.Errorf("%s counts as subscribed to, but the upstream listens for %s", uri, listens)
				}
			})
		}
		all.Wait()
		for i := range 100 { // what is heard last is what is wanted
			uri := fmt.Sprint("test://", i)
			if err := r.Subscribe(t.Context(), c, "a", uri, uri); err != nil {
				t.Error(err)
			}
			if listens := get(f, &f.listens); !strings.Contains(listens, uri) {
				t.Fatalf("%s counts as subscribed to, but the upstream listens for %q", uri, listens)
			}
		}
		time.AfterFunc(f.acknowledges/2, f.die)
		if err := r.Subscribe(t.Context(), c, "a", "test://dead", "test://dead"); err != nil {
			t.Errorf("while the upstream dies: %v", err)
		}
		f.set(func(f *fake) { f.acknowledges = time.Hour })
		begin := time.Now()
		if err := r.Subscribe(t.Context(), c, "a", "test://slow", "test://slow"); err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("an upstream that does not say so was waited for for %s, %v", time.Since(begin), err)
		}
	})
}

// TestListsAreReadAgainAfterAModernStreamBroke: changes may have been missed while no
// stream was open.
func TestListsAreReadAgainAfterAModernStreamBroke(t *testing.T) {
	calls := 0
	f := modernFake(0, &calls)
	inTime(t, f, func(t *testing.T, r *Registry) {
		after(time.Minute)
		if n := get(f, &f.listed); n != 1 {
			t.Errorf("its tools were listed %d times while it listens", n)
		}
		f.say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, get(f, &f.listen))
		after(10 * time.Second)
		if n := get(f, &f.listed); n != 2 || r.Catalog().Upstream("a").Tool("t2") == nil {
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
		})
		f.say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, get(f, &f.listen))
		after(100 * time.Second)
		if n := get(f, &f.listed); n != 2 {
			t.Errorf("its tools were listed %d times, want no more while it does not listen", n)
		}
	})
}
