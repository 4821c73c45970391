package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/seal"
	"mcpx/registry/upstream"
)

// wantRoots is the input of an upstream before 2026-07-28.
var wantRoots = []upstream.Input{{Key: "input", Method: "roots/list"}}

// runRound runs a round of a call and waits for its end.
func runRound(ctx context.Context, r *multiRoundCalls, c *Client, m rpc.Message, call func(ctx context.Context) ([]byte, error)) ([]byte, error) {
	if c.Conn == nil {
		c.Conn = rpc.NewConn(rpc.ConnOptions{Handler: c.conversation, Send: func([]byte) error { return nil }})
	}
	in, unlink := c.begin(ctx, m.ID)
	defer unlink()
	defer in.End()
	result, err := rpc.Wait(func(done rpc.Done) {
		r.run(in, c, m, rawjson.Get(rawjson.Get(m.Params, "_meta"), "progressToken"), func(_ *Client, _ rpc.Message, done rpc.Done) {
			go func() {
				result, err := call(in)
				done(rpc.NewResult(result), err)
			}()
		}, done)
	})
	return result.JSON, err
}

// requestWith returns what a request with capabilities and a log level declares.
func requestWith(capabilities, level string) declared {
	return declared{revision: []byte(`"2026-07-28"`), capabilities: []byte(capabilities), level: rawjson.AppendString(nil, level)}
}

// TestAClientThatDoesNotComeBack: after ten minutes its call is canceled and the
// request to it fails.
func TestAClientThatDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMultiRoundCalls()
		c := newClient("one", nil)
		asked, ended := make(chan error, 1), make(chan error, 1)
		result, err := runRound(t.Context(), r, c, rpc.Message{Method: "tools/call", Params: []byte("{}")}, func(ctx context.Context) ([]byte, error) {
			go func() {
				_, err := c.requestInput(context.WithoutCancel(ctx), wantRoots) // for the sake of another call
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

// TestARoundHasItsOwnStream: messages go to the stream of the client's latest round,
// with the progress token of that round.
func TestARoundHasItsOwnStream(t *testing.T) {
	r := newMultiRoundCalls()
	var sent [3][]string
	say := func(round int, params string, call func(c *Client) ([]byte, error)) []byte {
		c := newClient("one", func(message []byte) error {
			sent[round] = append(sent[round], string(message))
			return nil
		}).forRequest(requestWith(`{"roots":{}}`, "info"))
		result, err := runRound(t.Context(), r, c, rpc.Message{Method: "tools/call", Params: []byte(params)}, func(context.Context) ([]byte, error) { return call(c) })
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

// TestParkedCallsAreBounded: the calls that wait for a client are limited per owner
// and in total. Beyond that the client counts as not responding.
func TestParkedCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newMultiRoundCalls()
		size := 0
		park := func(owner string) (state []byte) {
			c := newClient(owner, func([]byte) error { return nil })
			params := append([]byte("{}"), bytes.Repeat([]byte(" "), size)...)
			result, err := runRound(t.Context(), r, c, rpc.Message{Method: "tools/call", Params: params}, func(ctx context.Context) ([]byte, error) {
				_, err := c.requestInput(ctx, wantRoots)
				return []byte("{}"), err
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
					if _, err := runRound(t.Context(), r, c, rpc.Message{Method: "tools/call", Params: params}, nil); err != nil {
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

// TestAParkedCallOwnsItsToken: the progress token is a copy, not a part of the first
// request.
func TestAParkedCallOwnsItsToken(t *testing.T) {
	body := []byte(`{"method":"tools/call","_meta":{"progressToken":"a"}}`)
	m := rpc.Message{Method: "tools/call", Params: body}
	p := newMultiRoundCalls().begin(nil, newClient("one", nil), m, rawjson.Get(rawjson.Get(body, "_meta"), "progressToken"), nil)
	copy(body, bytes.Repeat([]byte("x"), len(body)))
	if got := string(p.stream.Load().token); got != `"a"` {
		t.Errorf("the token is now %s", got)
	}
}

// TestRounds: an upstream of an older revision sends a request during a call of a
// 2026-07-28 client.
func TestRounds(t *testing.T) {
	c := talk2026(t, start(t, newUpstream(t, "one")))
	params := func(more string) string {
		return `{"name":"exec","arguments":{"server_name":"one","tool_name":"ask","arguments":{"method":"elicitation/create","params":{"message":"who?"}}},` + meta(`{"elicitation":{}}`, "") + more + `}`
	}
	asked := rawjson.Get([]byte(c.ask(t, request("tools/call", params("")))), "result")
	if got, want := string(rawjson.Get(asked, "inputRequests")), `{"input":{"method":"elicitation/create","params":{"message":"who?"}}}`; got != want || string(rawjson.Get(asked, "resultType")) != `"input_required"` {
		t.Fatalf("got %s", asked)
	}
	state := string(rawjson.Get(asked, "requestState"))
	unknown := `{"code":-32602,"message":"Invalid params: \"requestState\" is unknown, or its call has ended; make the call again without it","data":{"detail":"\"requestState\" is unknown, or its call has ended; make the call again without it"}}`
	c.want(t, "tools/call", params(`,"requestState":"made up"`), unknown)
	other := talk2026(t, c.bench)
	c.client = c.NewClient("another", func([]byte) error { return nil })
	other.want(t, "tools/call", params(`,"requestState":`+state), unknown)
	c.client = c.NewClient("newest", func([]byte) error { return nil })

	retry := params(`,"inputResponses":{"input":{"action":"accept","content":{"name":"Ann"}}},"requestState":` + state)
	if got := c.ask(t, request("tools/call", retry)); !strings.Contains(got, `"text":"{\"action\":\"accept\",\"content\":{\"name\":\"Ann\"}}"`) {
		t.Errorf("the second round answers %s", got)
	}
	c.want(t, "tools/call", retry, unknown)
}

// TestRequestsThatCannotAsk: only some results may request input. During other
// requests the upstream is refused, and the request goes on.
func TestRequestsThatCannotAsk(t *testing.T) {
	for _, method := range []string{"completion/complete", "tools/list", "tools/call"} {
		c := newClient("newest", nil).forRequest(requestWith(`{"roots":{}}`, ""))
		r := newMultiRoundCalls()
		result, err := runRound(t.Context(), r, c, rpc.Message{ID: []byte("1"), Method: method}, func(ctx context.Context) ([]byte, error) {
			if _, err := c.Request(ctx, "roots/list", nil); err != nil {
				return rawjson.AppendString(nil, err.Error()), nil
			}
			return nil, errors.New("the client was asked")
		})
		want := `"roots/list: the client accepts no requests during ` + method
		if method == "tools/call" {
			want = `{"resultType":"input_required"`
		}
		if err != nil || !strings.HasPrefix(string(result), want) {
			t.Errorf("%s: %s, %v; want %s", method, result, err, want)
		}
		for _, p := range r.parked {
			p.in.Cancel(errors.New("the test is over"))
		}
	}
}

func TestARoundWithoutAnAnswerFails(t *testing.T) {
	c := talk2026(t, start(t, newUpstream(t, "one")))
	params := `{"name":"exec","arguments":{"server_name":"one","tool_name":"ask","arguments":{"method":"roots/list"}},` + meta(`{"roots":{}}`, "")
	asked := rawjson.Get([]byte(c.ask(t, request("tools/call", params+"}"))), "result")
	if got := string(rawjson.Get(asked, "inputRequests")); got != `{"input":{"method":"roots/list","params":{}}}` {
		t.Errorf("asked for %s", got) // some clients cannot read a request without params
	}
	got := c.ask(t, request("tools/call", params+`,"requestState":`+string(rawjson.Get(asked, "requestState"))+`}`))
	if !strings.Contains(got, "roots/list: the client did not respond") {
		t.Errorf("got %s", got)
	}
}

// TestInputsOfOneRound: all requests of an upstream reach the client in one round, under
// the upstream's keys, and the responses come back in their order.
func TestInputsOfOneRound(t *testing.T) {
	r := newMultiRoundCalls()
	c := newClient("one", nil).forRequest(requestWith(`{"roots":{},"elicitation":{}}`, ""))
	inputs := []upstream.Input{{Key: "user_name", Method: "elicitation/create", Params: []byte(`{"message":"Who?"}`)}, {Key: "roots", Method: "roots/list"}}
	params := `{"name":"ask"}`
	round := func() string {
		result, err := runRound(t.Context(), r, c, rpc.Message{Method: "tools/call", Params: []byte(params)}, func(ctx context.Context) ([]byte, error) {
			responses, err := c.RequestAll(ctx, inputs)
			return bytes.Join(responses, []byte(" ")), err
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(result)
	}
	asked := round()
	const want = `{"resultType":"input_required","inputRequests":{"user_name":{"method":"elicitation/create","params":{"message":"Who?"}},"roots":{"method":"roots/list","params":{}}},"requestState":`
	if !strings.HasPrefix(asked, want) {
		t.Fatalf("got  %s\nwant %s…", asked, want)
	}
	params = `{"name":"ask","inputResponses":{"roots":{"roots":[]},"user_name":{"action":"accept"}},"requestState":` + string(rawjson.Get([]byte(asked), "requestState")) + `}`
	if got := round(); got != `{"action":"accept"} {"roots":[]}` {
		t.Errorf("the responses are %s", got)
	}
	inputs = append(inputs, upstream.Input{Key: "model", Method: "sampling/createMessage"})
	if _, err := c.RequestAll(t.Context(), inputs); err == nil || !strings.Contains(err.Error(), `"sampling"`) {
		t.Errorf("error %v, want that the client cannot sample", err)
	}
}

// TestSealedStates: the state of a call is sealed. Another replica says why it cannot continue
// the call, and whoever did not get the state learns nothing.
func TestSealedStates(t *testing.T) {
	box := seal.New(seal.Round, []seal.Key{bytes.Repeat([]byte{1}, seal.KeyBytes)})
	sealing := func(box *seal.Box) *multiRoundCalls {
		r := newMultiRoundCalls()
		r.sealed = newSealedRounds(box, "work")
		return r
	}
	own, other := sealing(box), sealing(box)
	foreign := sealing(seal.New(seal.Round, []seal.Key{bytes.Repeat([]byte{2}, seal.KeyBytes)}))
	round := func(r *multiRoundCalls, owner, method, params string) string {
		c := newClient(owner, func([]byte) error { return nil })
		result, err := runRound(t.Context(), r, c, rpc.Message{Method: method, Params: []byte(params)}, func(ctx context.Context) ([]byte, error) {
			_, err := c.requestInput(ctx, wantRoots)
			return []byte(`{"over":true}`), err
		})
		return fmt.Sprint(string(result), err)
	}
	continued := func(state string) string {
		return `{"inputResponses":{"input":{"roots":[]}},"requestState":"` + state + `"}`
	}
	state, ok := rawjson.String(rawjson.Get([]byte(round(own, "me", "tools/call", "{}")), "requestState"))
	if !ok || !strings.HasPrefix(state, "v1.") {
		t.Fatalf("the state is %q", state)
	}
	for _, row := range []struct {
		name                string
		calls               *multiRoundCalls
		owner, method, sent string
		want                string
	}{
		{"another replica", other, "me", "tools/call", state, "waits on another replica"},
		{"another replica and owner", other, "you", "tools/call", state, "is unknown"},
		{"another key", foreign, "me", "tools/call", state, "is unknown"},
		{"another owner", own, "you", "tools/call", state, "is unknown"},
		{"another method", own, "me", "prompts/get", state, "is unknown"},
		{"truncated", own, "me", "tools/call", state[:len(state)-4], "is unknown"},
		{"not sealed", own, "me", "tools/call", "AAAAAAAAAAAAAAAAAAAAAAAAAA", "is unknown"},
		{"as it is", own, "me", "tools/call", state, `{"over":true}`},
		{"a second time", own, "me", "tools/call", state, "its call has ended"},
	} {
		if got := round(row.calls, row.owner, row.method, continued(row.sent)); !strings.Contains(got, row.want) {
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}

// TestQuestionsDuringARound: a call that asks several questions at once gets an answer to each
// of them, also to one that it asks at the moment when the next round begins.
func TestQuestionsDuringARound(t *testing.T) {
	const questions = 300
	r := newMultiRoundCalls()
	c := newClient("one", nil).forRequest(requestWith(`{"roots":{}}`, ""))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	params := "{}"
	for {
		result, err := runRound(ctx, r, c, rpc.Message{Method: "tools/call", Params: []byte(params)}, func(ctx context.Context) ([]byte, error) {
			answers := make(chan error, questions)
			for range questions {
				go func() {
					_, err := c.requestInput(ctx, wantRoots)
					answers <- err
				}()
			}
			for range questions {
				if err := <-answers; err != nil {
					return nil, err
				}
			}
			return []byte("{}"), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if string(result) == "{}" {
			return
		}
		params = `{"inputResponses":{"input":{"roots":[]}},"requestState":` + string(rawjson.Get(result, "requestState")) + `}`
	}
}

// TestResultBetweenTwoRounds: a call may end while its question waits for the client. Its result
// is the answer to the next round, unless it is longer than parked calls may be together.
func TestResultBetweenTwoRounds(t *testing.T) {
	for size, want := range map[int]string{100: "", maxOwnerBytes: "too long to be kept"} {
		r := newMultiRoundCalls()
		c := newClient("one", nil).forRequest(requestWith(`{"roots":{}}`, ""))
		text := rawjson.AppendString(nil, strings.Repeat("x", size))
		asked, ended := make(chan struct{}), make(chan struct{})
		call := func(ctx context.Context) ([]byte, error) {
			go func() {
				_, _ = c.requestInput(ctx, wantRoots)
				close(ended)
			}()
			<-asked
			return text, nil
		}
		result, err := runRound(t.Context(), r, c, rpc.Message{Method: "tools/call", Params: []byte("{}")}, call)
		if err != nil {
			t.Fatal(err)
		}
		close(asked)
		for _, p := range r.parked {
			<-p.in.Done() // the call is over
		}
		params := `{"inputResponses":{"input":{"roots":[]}},"requestState":` + string(rawjson.Get(result, "requestState")) + `}`
		result, err = runRound(t.Context(), r, c, rpc.Message{Method: "tools/call", Params: []byte(params)}, nil)
		if want == "" && (err != nil || !bytes.Equal(result, text)) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d bytes: %.40s, %v", size, result, err)
		}
		<-ended
	}
}

// TestCallThatEndsDuringARound: when a call ends at the start of a round, the questions that
// waited for this round end with an error, so that they can be asked for another call.
func TestCallThatEndsDuringARound(t *testing.T) {
	c := newClient("one", nil).forRequest(requestWith(`{"roots":{}}`, ""))
	c.Conn = rpc.NewConn(rpc.ConnOptions{Handler: c.conversation, Send: func([]byte) error { return nil }})
	in, unlink := c.begin(t.Context(), nil)
	defer unlink()
	call := newMultiRoundCalls().begin(in, c, rpc.Message{Method: "tools/call"}, nil, func(rpc.Result, error) {})
	questions := make([]inputRequest, 3)
	for i := range questions {
		questions[i] = inputRequest{wantRoots, make(chan [][]byte, 1)}
		if !call.offer(questions[i]) {
			t.Fatal("the call is over")
		}
	}
	call.next(in, newRoundStream(c, nil), rpc.Message{}, func(rpc.Result, error) { call.end(rpc.Result{}, nil) })
	select {
	case responses := <-questions[2].responses:
		if responses != nil {
			t.Errorf("the question got %q", responses)
		}
	default:
		t.Error("the question waits forever")
	}
}
