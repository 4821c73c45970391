package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// meta is the _meta of a request of 2026-07-28.
func meta(capabilities, more string) string {
	return fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s%s}`, capabilities, more)
}

// modernTalk is a client that never says initialize.
func modernTalk(t *testing.T, b *bench) *talk {
	t.Helper()
	c := &talk{bench: b, sent: make(chan string, 1000)}
	b.client = b.NewClient("modern", func(message []byte) error {
		c.sent <- string(message)
		return nil
	})
	b.registry.Attach(b.client)
	return c
}

func TestModernRequests(t *testing.T) {
	c := modernTalk(t, two(t))
	info := `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mcpx","version":"1.2.3"}}`
	c.want(t, "tools/call", `{"name":"exec","arguments":{"server_name":"one","tool_name":"echo","arguments":{"text":"hi"}},`+meta("{}", "")+`}`,
		`{"content":[{"type":"text","text":"hi"}],"resultType":"complete",`+info+`}`)
	c.want(t, "resources/read", `{"uri":"own://two",`+meta("{}", "")+`}`,
		`{"contents":[{"uri":"own://two","text":"this is own://two of two","x":9007199254740993},{"uri":"other://part","blob":"AA=="}],"resultType":"complete",`+info+`,"ttlMs":0,"cacheScope":"private"}`)
	c.want(t, "resources/read", `{"uri":"nobody://knows",`+meta("{}", "")+`}`, `{"code":-32602,"message":"Resource not found: nobody://knows","data":{"uri":"nobody://knows"}}`)
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "roots/list", "shutdown", "nope"} {
		c.want(t, method, `{`+meta("{}", "")+`}`, `{"code":-32601,"message":"Method '`+method+`' not found"}`)
	}
	c.want(t, "tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01"}}`,
		`{"code":-32022,"message":"Unsupported protocol version: 2027-01-01","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2027-01-01"}}`)
	c.want(t, "tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`,
		`{"code":-32602,"message":"Invalid params: \"_meta\" must have io.modelcontextprotocol/clientCapabilities","data":{"detail":"\"_meta\" must have io.modelcontextprotocol/clientCapabilities"}}`)
	discovered := c.ask(t, request("server/discover", `{`+meta("{}", "")+`}`))
	for _, want := range []string{`"supportedVersions":["2026-07-28",`, `"resultType":"complete"`, `"resources":{"subscribe":true,"listChanged":true}`, `"ttlMs":0`} {
		if !strings.Contains(discovered, want) {
			t.Errorf("server/discover: no %s in %s", want, discovered)
		}
	}
	// In the old way that method is unknown.
	c.want(t, "server/discover", "", `{"code":-32601,"message":"Method 'server/discover' not found"}`)
}

func TestModernLogMessagesAreAskedForByRequest(t *testing.T) {
	c := modernTalk(t, start(t, upstream(t, "one")))
	say := func(more string) {
		c.ask(t, request("tools/call", `{"name":"exec","arguments":{"server_name":"one","tool_name":"say","arguments":{"method":"notifications/message","params":[{"level":"info","data":1},{"level":"error","data":2}]}},`+meta("{}", more)+`}`))
	}
	say("")
	say(`,"io.modelcontextprotocol/logLevel":"error"`)
	if got := <-c.sent; !strings.Contains(got, `"data":2`) {
		t.Errorf("the first message is %s", got)
	}
	if len(c.sent) != 0 {
		t.Errorf("%d more messages", len(c.sent))
	}
}

// TestRounds has an upstream of the old way ask in the middle of a call of a
// client of the new way.
func TestRounds(t *testing.T) {
	c := modernTalk(t, start(t, upstream(t, "one")))
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
	other := modernTalk(t, c.bench)
	c.client = c.NewClient("another", func([]byte) error { return nil })
	other.want(t, "tools/call", params(`,"requestState":`+state), unknown)
	c.client = c.NewClient("modern", func([]byte) error { return nil })

	retry := params(`,"inputResponses":{"input":{"action":"accept","content":{"name":"Ann"}}},"requestState":` + state)
	if got := c.ask(t, request("tools/call", retry)); !strings.Contains(got, `"text":"{\"action\":\"accept\",\"content\":{\"name\":\"Ann\"}}"`) {
		t.Errorf("the second round answers %s", got)
	}
	c.want(t, "tools/call", retry, unknown)
}

// Only some answers may ask for something: an upstream that asks during another
// request is refused, and the request goes on.
func TestRequestsThatCannotAsk(t *testing.T) {
	for _, method := range []string{"completion/complete", "tools/list", "tools/call"} {
		c := newClient("modern", nil).forRequest("2026-07-28", []byte(`{"roots":{}}`), nil)
		r := newMultiRoundCalls()
		result, err := r.run(t.Context(), c, jsonrpc.Message{ID: []byte("1"), Method: method}, func(ctx context.Context) ([]byte, error) {
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
			p.cancel(nil)
			<-p.done
		}
	}
}

func TestARoundWithoutAnAnswerFails(t *testing.T) {
	c := modernTalk(t, start(t, upstream(t, "one")))
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

func TestListen(t *testing.T) {
	c := modernTalk(t, two(t))
	c.ask(t, request("tools/call", `{"name":"inspect","arguments":{"server_name":"one"},`+meta("{}", "")+`}`))
	listen := `{"jsonrpc":"2.0","id":"stream","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["own://two"]},` + meta("{}", "") + `}}`
	done := c.begin(t, listen)
	tag := `"_meta":{"io.modelcontextprotocol/subscriptionId":"stream"}`
	if got, want := c.next(t, "acknowledged"), `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+tag+`,"notifications":{"promptsListChanged":true,"resourceSubscriptions":["own://two"]}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	say := func(method, params string) {
		c.ask(t, request("tools/call", `{"name":"exec","arguments":{"server_name":"two","tool_name":"say","arguments":{"method":"`+method+`","params":[`+params+`]}},`+meta("{}", "")+`}`))
	}
	say("notifications/resources/updated", `{"uri":"own://two"}`)
	if got, want := c.next(t, "updated"), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"own://two",`+tag+`}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.ask(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"stream"}}`)
	if got := <-done; got != nil {
		t.Errorf("a cancelled stream was answered with %s", got)
	}
	bad := `{"notifications":{"resourceSubscriptions":["nobody://knows"]},` + meta("{}", "") + `}`
	c.want(t, "subscriptions/listen", bad, `{"code":-32602,"message":"Resource not found: nobody://knows","data":{"uri":"nobody://knows"}}`)
}
