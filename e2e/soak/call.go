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

	"mcpx/internal/mcptest"
)

// call is one call to the tool work.
type call struct {
	mcptest.Work
	part   part
	server string
	cancel time.Duration // the client cancels after this time; 0: never
	drop   bool          // it cancels by closing the connection
	deaf   time.Duration // the client reads nothing of the answer for this time, over HTTP
	handle string        // of kept rows; the call refers to them instead of giving a number of bytes
	probe  bool          // waits for a starting upstream; its duration does not count
}

var lastNonce atomic.Int64

// plainCall returns a call with a small result.
func plainCall(p part, server string) call {
	return call{part: p, server: server, Work: mcptest.Work{Nonce: fmt.Sprintf("nonce-%d-", lastNonce.Add(1)), How: "text"}}
}

// randomCall returns a random call. A part that cuts results has more long results.
func randomCall(p part) call {
	c := plainCall(p, p.servers[rand.IntN(len(p.servers))])
	switch n := rand.IntN(100); {
	case p.resultTokens > 0 && n < 40:
		c.Bytes = 1 << (10 + rand.IntN(7))
	case n < 50:
	case n < 68:
		c.MS = 10 + rand.IntN(300)
	case n < 78:
		c.Bytes, c.deaf = 1<<(10+rand.IntN(10)), rand.N(200*time.Millisecond)
		if p.resultTokens > 0 {
			c.Bytes = min(c.Bytes, 1<<16)
		}
	case n < 86:
		c.MS, c.Steps = 50, 5
	case n < 90:
		c.How = "isError"
	case n < 94:
		c.How = "error"
	case n < 98:
		c.MS, c.cancel = 300, rand.N(150*time.Millisecond)
	default:
		c.MS, c.cancel, c.drop = 300, rand.N(150*time.Millisecond), true
	}
	return c
}

// params returns the params of tools/call; the caller chooses the progress token.
func (c call) params(token string) string {
	work, _ := json.Marshal(c.Work) // cannot fail: it has only strings and numbers
	if c.handle != "" {
		work = fmt.Appendf(nil, `{"nonce":%q,"how":%q,"bytes":{"$r":"%s/%d/n"}}`, c.Nonce, c.How, c.handle, c.Bytes)
	}
	return fmt.Sprintf(`{"name":"exec","arguments":{"server_name":%q,"tool_name":"work","arguments":%s},"_meta":{"progressToken":%s}}`, c.server, work, token)
}

// answer is the answer to a call.
type answer struct {
	Result   json.RawMessage `json:"result"`
	Error    json.RawMessage `json:"error"`
	progress []string        // progress messages
	session  session
	rest     *rest // if the result was cut
}

// message is a JSON-RPC message from mcpx to a client.
type message struct {
	answer
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProgressToken json.RawMessage `json:"progressToken"`
		Message       string          `json:"message"`
	} `json:"params"`
}

// session is the client session of a call, if that has upstream sessions of its own.
type session struct {
	id     string
	opened time.Time
}

// caller makes calls over one front. It is safe for concurrent use.
type caller interface {
	// call sends tools/call and waits for the answer. It reads a cut result to its end.
	// It returns errGivenUp for a canceled call and errDropped if the connection is gone.
	call(c call) (answer, error)
	// exec calls any tool of a server. If cancel is not 0, exec cancels the call after that
	// time, and returns errGivenUp.
	exec(server, tool, arguments string, cancel time.Duration) (answer, error)
}

var (
	errGivenUp = errors.New("given up")
	errDropped = errors.New("dropped")
	errNone    = errors.New("no answer")
)

// patience is the time limit for an answer, far above those of the upstreams.
const patience = 40 * time.Second

// work makes calls until ctx ends, and records the answers.
func (s *soak) work(ctx context.Context, f *front) {
	by := f.newCaller()
	for ctx.Err() == nil {
		s.one(by, randomCall(f.part))
		sleep(ctx, s.pause)
	}
	if c, ok := by.(*webClient); ok && f.isolated {
		c.close()
	}
}

func (s *soak) one(by caller, c call) outcome {
	begin := time.Now()
	a, err := by.call(c)
	e := entry{call: c, outcome: judge(c, a, err), session: a.session, begin: begin, end: time.Now()}
	s.ledger.note(e, a, err)
	return e.outcome
}

// outcome is how a call ended.
type outcome string

const (
	ok          outcome = "ok"
	unavailable outcome = "unavailable" // it was not sent
	stopped     outcome = "stopped during the call"
	timedOut    outcome = "timed out"
	broken      outcome = "connection broke"
	canceled    outcome = "cancelled"
	dropped     outcome = "dropped"
	wrong       outcome = "wrong"
	lost        outcome = "lost"
)

// reasons are the expected failures, by their text.
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

// judge returns the outcome of a call. Anything unexpected is wrong.
func judge(c call, a answer, err error) outcome {
	switch {
	case errors.Is(err, errGivenUp):
		return canceled
	case errors.Is(err, errDropped):
		return dropped
	case err != nil:
		return lost
	}
	a.Result = keptNote.ReplaceAll(a.Result, nil)
	var r struct {
		Content []struct{ Text string }
		IsError bool
	}
	if json.Unmarshal(a.Result, &r) != nil || len(r.Content) != 1 {
		return wrong
	}
	text := r.Content[0].Text
	switch {
	case c.How == "error" && r.IsError && text == fmt.Sprintf("server %q answered with error %d: %s", c.server, mcptest.WorkError, c.Nonce):
		return ok
	case c.How != "error" && c.isWhole(a):
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

// isWhole reports whether the answer has every progress notification and every byte of
// the result, cut only if it must be.
func (c call) isWhole(a answer) bool {
	for _, message := range a.progress {
		if message != c.Nonce {
			return false
		}
	}
	if len(a.progress) != c.Steps {
		return false
	}
	want := c.Result()
	if a.rest == nil {
		return string(a.Result) == want && !c.mustCut()
	}
	return c.mayCut() && a.rest.err == nil && a.rest.text == c.Text() && isCutFrom(string(a.Result), want, c.Text())
}
