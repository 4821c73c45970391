//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// call is one call of the tool work.
type call struct {
	nonce  string
	server string
	ms     int
	bytes  int
	steps  int
	how    string
	cancel time.Duration // after which the client gives up; 0: it does not
	drop   bool          // it gives up by cutting the connection
}

var lastNonce atomic.Int64

// randomCall is one of many shapes.
func randomCall() call {
	c := call{nonce: fmt.Sprintf("nonce-%d-", lastNonce.Add(1)), server: allServers[rand.IntN(len(allServers))], how: "text"}
	switch n := rand.IntN(100); {
	case n < 50:
	case n < 68:
		c.ms = 10 + rand.IntN(300)
	case n < 78:
		c.bytes = 1 << (10 + rand.IntN(10))
	case n < 86:
		c.ms, c.steps = 50, 5
	case n < 90:
		c.how = "isError"
	case n < 94:
		c.how = "error"
	case n < 98:
		c.ms, c.cancel = 300, rand.N(150*time.Millisecond)
	default:
		c.ms, c.cancel, c.drop = 300, rand.N(150*time.Millisecond), true
	}
	return c
}

// params are those of tools/call; the progress token is for the caller to choose.
func (c call) params(token string) string {
	return fmt.Sprintf(`{"name":"exec","arguments":{"server_name":%q,"tool_name":"work","arguments":{"nonce":%q,"ms":%d,"bytes":%d,"steps":%d,"how":%q}},"_meta":{"progressToken":%s}}`,
		c.server, c.nonce, c.ms, c.bytes, c.steps, c.how, token)
}

// answer is what came back.
type answer struct {
	Result   json.RawMessage `json:"result"`
	Error    json.RawMessage `json:"error"`
	progress []string        // the messages of the call's progress
}

// caller makes calls over one front.
type caller interface {
	// call sends tools/call and waits for the answer. A call that the client gave
	// up returns errGivenUp, one whose connection is gone errDropped.
	call(c call) (answer, error)
	// exec calls any tool of a server.
	exec(server, tool, arguments string) (answer, error)
}

var (
	errGivenUp = errors.New("given up")
	errDropped = errors.New("dropped")
	errNone    = errors.New("no answer")
)

// patience is what an answer may take: the upstreams' limits are far below.
const patience = 40 * time.Second

// work calls until ctx ends, and notes what comes back.
func (s *soak) work(ctx context.Context, by caller) {
	for ctx.Err() == nil {
		s.one(by, randomCall())
		sleep(ctx, s.pause)
	}
}

func (s *soak) one(by caller, c call) {
	begin := time.Now()
	a, err := by.call(c)
	s.ledger.note(c, judge(c, a, err), a, time.Since(begin))
}

// outcome is what became of a call.
type outcome string

const (
	ok          outcome = "ok"
	unavailable outcome = "unavailable" // it was not sent
	stopped     outcome = "stopped during the call"
	timedOut    outcome = "timed out"
	broken      outcome = "connection broke"
	cancelled   outcome = "cancelled"
	dropped     outcome = "dropped"
	wrong       outcome = "wrong"
	lost        outcome = "lost"
)

// reasons are the ways in which a call may fail, by what must be said then.
var reasons = []struct {
	text    string
	outcome outcome
}{
	{`server "%s" is unavailable: `, unavailable},
	{`server "%s" stopped during the call: `, stopped},
	{`server "%s": timed out: `, timedOut},
	{`the call was not sent: `, unavailable},
	{`the call to server "%s" failed: `, broken},
}

// judge says what became of a call. Whatever is not foreseen is wrong.
func judge(c call, a answer, err error) outcome {
	switch {
	case errors.Is(err, errGivenUp):
		return cancelled
	case errors.Is(err, errDropped):
		return dropped
	case err != nil:
		return lost
	}
	var r struct {
		Content []struct{ Text string }
		IsError bool
	}
	if json.Unmarshal(a.Result, &r) != nil || len(r.Content) != 1 {
		return wrong
	}
	text := r.Content[0].Text
	switch {
	case c.how == "error" && r.IsError && text == fmt.Sprintf("server %q answered with error -32042: %s", c.server, c.nonce):
		return ok
	case r.IsError == (c.how == "isError") && text == c.nonce+strings.Repeat(".", c.bytes):
		if len(a.progress) != c.steps {
			return wrong
		}
		return ok
	case !r.IsError:
		return wrong
	}
	for _, reason := range reasons {
		prefix := reason.text
		if strings.Contains(prefix, "%s") {
			prefix = fmt.Sprintf(prefix, c.server)
		}
		if strings.HasPrefix(text, prefix) {
			return reason.outcome
		}
	}
	return wrong
}
