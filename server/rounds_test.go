package server

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// TestAClientThatDoesNotComeBack: neither the call nor who asked is kept for it.
func TestAClientThatDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMultiRoundCalls()
		c := newClient("one", nil)
		asked, ended := make(chan error, 1), make(chan error, 1)
		result, err := r.run(t.Context(), c, jsonrpc.Message{Method: "tools/call", Params: []byte("{}")}, func(ctx context.Context) ([]byte, error) {
			go func() {
				_, err := c.requestInput(context.WithoutCancel(ctx), "roots/list", nil) // for the sake of another call
				asked <- err
			}()
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, ctx.Err()
		})
		if kind, _ := rawjson.String(rawjson.Get(result, "resultType")); err != nil || kind != "input_required" {
			t.Fatalf("%s, %v", result, err)
		}
		time.Sleep(parkTime + time.Second)
		synctest.Wait()
		for name, end := range map[string]chan error{"the client did not respond": asked, "did not continue the call within 10m0s": ended} {
			select {
			case err := <-end:
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%v, want %s", err, name)
				}
			default:
				t.Errorf("nobody was told: %s", name)
			}
		}
	})
}

// TestARoundHasItsOwnStream: what a call says after its client came back goes where
// the client came back from, under the token it gave there.
func TestARoundHasItsOwnStream(t *testing.T) {
	r := newMultiRoundCalls()
	var sent [3][]string
	say := func(round int, params string, call func(c *Client) ([]byte, error)) []byte {
		c := newClient("one", func(message []byte) error {
			sent[round] = append(sent[round], string(message))
			return nil
		}).forRequest("2026-07-28", []byte(`{"roots":{}}`), []byte(`"info"`))
		result, err := r.run(t.Context(), c, jsonrpc.Message{Method: "tools/call", Params: []byte(params)}, func(context.Context) ([]byte, error) { return call(c) })
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	asked := say(0, `{"_meta":{"progressToken":"a"}}`, func(c *Client) ([]byte, error) {
		progress := c.progress([]byte(`{"progressToken":"a"}`))
		for i := range 2 {
			progress(fmt.Appendf(nil, `{"progress":%d}`, i))
			if _, err := c.Request(t.Context(), "roots/list", nil); err != nil {
				return nil, err
			}
		}
		progress([]byte(`{"progress":2}`))
		c.Notify("notifications/message", []byte(`{"level":"info"}`))
		return []byte("{}"), nil
	})
	again := func(meta string) string {
		return `{"inputResponses":{"input":{"roots":[]}},"requestState":` + string(rawjson.Get(asked, "requestState")) + meta + `}`
	}
	asked = say(1, again(`,"_meta":{"progressToken":"b"}`), nil)
	asked = say(2, again(""), nil)
	if string(asked) != "{}" {
		t.Errorf("the call ends with %s", asked)
	}
	for round, want := range [3]string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":0,"progressToken":"a"}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"b"}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`,
	} {
		if got := strings.Join(sent[round], "\n"); got != want {
			t.Errorf("round %d has\n%s\nwant\n%s", round+1, got, want)
		}
	}
}

// TestParkedCallsAreBounded: an owner can park so many calls, all of them together
// so many. A further question gets the error that the client did not respond, and a
// call that goes on leaves nothing behind.
func TestParkedCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMultiRoundCalls()
		size := 0
		park := func(owner string) (state []byte) {
			c := newClient(owner, func([]byte) error { return nil })
			params := append([]byte("{}"), bytes.Repeat([]byte(" "), size)...)
			result, err := r.run(t.Context(), c, jsonrpc.Message{Method: "tools/call", Params: params}, func(ctx context.Context) ([]byte, error) {
				return c.requestInput(ctx, "roots/list", nil)
			})
			if err != nil && !strings.Contains(err.Error(), "did not respond") {
				t.Fatal(err)
			}
			return rawjson.Get(result, "requestState")
		}
		for i := range maxParked + 10 {
			owner := fmt.Sprint("owner ", i/maxOwnerParked)
			if parked := park(owner) != nil; parked != (i < maxParked) {
				t.Fatalf("call %d: parked is %v", i, parked)
			}
		}
		back := func(owner string) {
			for state, p := range r.parked {
				if p.owner == owner {
					c := newClient(owner, func([]byte) error { return nil })
					params := fmt.Appendf(nil, `{"requestState":%q,"inputResponses":{"input":{}}}`, state)
					if _, err := r.run(t.Context(), c, jsonrpc.Message{Method: "tools/call", Params: params}, nil); err != nil {
						t.Fatal(err)
					}
					return
				}
			}
		}
		back("owner 0")
		if park("owner 1") != nil {
			t.Error("an owner has parked more than its share")
		}
		if park("owner 0") == nil {
			t.Error("there is room again, but a call is not parked")
		}
		time.Sleep(parkTime)
		synctest.Wait()
		if len(r.parked) > 0 {
			t.Errorf("%d calls are parked for ever", len(r.parked))
		}
		size = maxOwnerBytes - 100
		for i, owner := range []string{"a", "a", "b", "c", "d", "e"} {
			if parked := park(owner) != nil; parked != (i != 1 && i < 5) {
				t.Errorf("large call %d: parked is %v", i, parked)
			}
		}
		time.Sleep(parkTime)
		synctest.Wait()
	})
}

// TestAParkedCallOwnsItsToken: the progress token of a call is a copy, not a part of
// the first request, which later rounds do not need.
func TestAParkedCallOwnsItsToken(t *testing.T) {
	body := []byte(`{"method":"tools/call","_meta":{"progressToken":"a"}}`)
	m := jsonrpc.Message{Method: "tools/call", Params: body}
	p := newMultiRoundCall(t.Context(), newClient("one", nil), m, func(context.Context) ([]byte, error) { return nil, nil })
	copy(body, bytes.Repeat([]byte("x"), len(body)))
	if got := string(p.stream.Load().token); got != `"a"` {
		t.Errorf("the token is now %s", got)
	}
}
