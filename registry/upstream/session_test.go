package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/rpc"
	"mcpx/registry/link"
)

// TestLimitsOfCalls: an idle call ends after exactly a minute, one with progress after
// exactly a quarter of an hour. The upstream is notified.
func TestLimitsOfCalls(t *testing.T) {
	for _, c := range []struct {
		name            string
		progress, takes time.Duration
		want            time.Duration
		err             string
	}{
		{"just in time", time.Hour, time.Minute - 1, time.Minute - 1, ""},
		{"idle", time.Hour, time.Hour, time.Minute, `server "a": timed out: no answer and no progress within 1m0s (its "timeout"); the call was canceled`},
		{"progress", 59 * time.Second, 10 * time.Minute, 10 * time.Minute, ""},
		{"progress that is too rare", 61 * time.Second, 10 * time.Minute, time.Minute, `(its "timeout")`},
		{"progress forever", 10 * time.Second, time.Hour, 15 * time.Minute, `server "a": timed out: no answer within 15m0s (its "max_timeout"); the call was canceled`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, f fixture) {
				f.peer.on("tools/call", func(m rpc.Message) {
					for at := c.progress; at < c.takes; at += c.progress {
						time.AfterFunc(at, func() {
							f.peer.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.ID)
						})
					}
					time.AfterFunc(c.takes, func() { f.peer.respond(m.ID, done) })
				})
				begin := time.Now()
				_, err := f.call(t.Context(), nil)
				if took := time.Since(begin); took != c.want {
					t.Errorf("it took %s, want %s", took, c.want)
				}
				if (err == nil) != (c.err == "") || !strings.Contains(fmt.Sprint(err), c.err) {
					t.Errorf("error %v, want %s", err, c.err)
				}
				synctest.Wait()
				if canceled := len(f.peer.got("notifications/cancelled")); (canceled == 1) != (c.err != "") || canceled > 1 {
					t.Errorf("the upstream was notified %d times that the call is canceled", canceled)
				}
			})
		})
	}
}

// TestResponses: the upstream's own error and result reach the caller. What no client can
// use is an error.
func TestResponses(t *testing.T) {
	const unusable = `the call to server "a" failed: it answered `
	for _, c := range []struct{ name, response, want string }{
		{"result", `"result":{"n":9007199254740993, "a":[ 1 ]}`, `{"n":9007199254740993, "a":[ 1 ]}`},
		{"error", `"error":{"code":-32001,"message":"it did not work","data":{"detail":9007199254740993}}`, `it did not work (-32001) {"detail":9007199254740993}`},
		{"error with a secret", `"error":{"code":-1,"message":"bad sesame","data":{"sesame":["sesame"]}}`, `bad *** (-1) {"***":["***"]}`},
		{"no object", `"result":[1]`, unusable + "tools/call with a result that is not an object"},
		{"no message", `"result":{},"error":{}`, unusable + "with a message that is not JSON-RPC"},
		{"the request itself", `"method":"tools/call","params":{}`, `the call to server "a" failed: it repeats what it reads`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, f fixture) {
				f.peer.answer("tools/call", c.response, 0)
				result, err := f.call(t.Context(), nil)
				got := string(result)
				var own *rpc.Error
				switch {
				case errors.As(err, &own):
					got = fmt.Sprintf("%v %s", own, own.Data)
				case err != nil:
					got = err.Error()
				}
				if !strings.HasPrefix(got, c.want) {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestMalformedMessages: messages that are not JSON-RPC are skipped, with one warning and
// without secrets.
func TestMalformedMessages(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		for range 3 {
			f.peer.say(`sesame, open`)
		}
		f.peer.answer("tools/call", done, 0)
		if _, err := f.call(t.Context(), nil); err != nil {
			t.Error(err)
		}
		log := f.host.log.String()
		if n := strings.Count(log, `"level":"warn"`); n != 1 || strings.Contains(log, "sesame") || !strings.Contains(log, "***, open") {
			t.Errorf("%d warnings in %s", n, log)
		}
	})
}

// TestGap: after a gap in the messages all lists are read again.
func TestGap(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		f.peer.arrivals <- link.Delivery{Err: link.ErrGap}
		synctest.Wait()
		want := []string{"notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"}
		if got := f.host.heard(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestPanicsCostOneMessage: a panic while a message is handled ends neither the process
// nor the session.
func TestPanicsCostOneMessage(t *testing.T) {
	inTime(t, func(t *testing.T, f fixture) {
		f.peer.on("tools/call", func(m rpc.Message) {
			f.peer.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.ID)
			f.peer.respond(m.ID, done)
		})
		ended := 0
		err := f.Go(t.Context(), Request{Method: "tools/call", Meta: []byte("{}"), Progress: func([]byte) { panic("on purpose") }}, Limits{}, func(rpc.Result, error) {
			ended++
			panic("on purpose")
		})
		if err != nil {
			t.Fatal(err)
		}
		f.host.panics = true
		f.peer.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
		f.host.only = &client{id: "one", reply: func(context.Context) ([]byte, error) { panic("on purpose") }}
		f.peer.request("q", "roots/list", "{}")
		if n := strings.Count(f.host.log.String(), "panic while handling a message"); n != 4 || ended != 1 {
			t.Errorf("%d panics are in the log, want 4; the call ended %d times:\n%s", n, ended, f.host.log.String())
		}
		if _, err := f.call(t.Context(), nil); err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
}
