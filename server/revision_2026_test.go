package server

import (
	"strings"
	"testing"
)

func Test2026Requests(t *testing.T) {
	c := talk2026(t, two(t))
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
	// In earlier revisions that method is unknown.
	c.want(t, "server/discover", "", `{"code":-32601,"message":"Method 'server/discover' not found"}`)
}

func Test2026LogMessagesAreAskedForByRequest(t *testing.T) {
	c := talk2026(t, start(t, newUpstream(t, "one")))
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

func TestListen(t *testing.T) {
	c := talk2026(t, two(t))
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
		t.Errorf("a canceled stream was answered with %s", got)
	}
	bad := `{"notifications":{"resourceSubscriptions":["nobody://knows"]},` + meta("{}", "") + `}`
	c.want(t, "subscriptions/listen", bad, `{"code":-32602,"message":"Resource not found: nobody://knows","data":{"uri":"nobody://knows"}}`)
}
