package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// talk is a client that has said initialize, and what it is sent.
type talk struct {
	*bench
	sent chan string
}

// connect opens a conversation in a revision with those capabilities.
func (b *bench) connect(t *testing.T, revision, capabilities string) *talk {
	t.Helper()
	c := &talk{bench: b, sent: make(chan string, 1000)}
	b.client = b.NewClient("tester", func(message []byte) error {
		c.sent <- string(message)
		return nil
	})
	b.registry.Attach(b.client)
	answer := b.ask(t, request("initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s}`, revision, capabilities)))
	if !strings.Contains(answer, `"protocolVersion":"`+revision+`"`) {
		t.Fatalf("initialize: %s", answer)
	}
	b.ask(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// next is the next message with that part which the client is sent.
func (c *talk) next(t *testing.T, part string) string {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		select {
		case message := <-c.sent:
			if strings.Contains(message, part) {
				return message
			}
		case <-limit:
			t.Fatalf("no message with %s", part)
		}
	}
}

// want checks the answer to a request: the result, or the error object.
func (c *talk) want(t *testing.T, method, params, want string) {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(c.ask(t, request(method, params))))
	if err != nil {
		t.Fatal(err)
	}
	got := string(m.Result)
	if m.Error != nil {
		got = string(m.Error)
	}
	if got != want {
		t.Errorf("%s %s\n got %s\nwant %s", method, params, got, want)
	}
}

// keys are the values of one member of the items of a list.
func (c *talk) keys(t *testing.T, method, list, key string) string {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(c.ask(t, request(method, ""))))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for item := range rawjson.Elements(rawjson.Get(m.Result, list)) {
		text, _ := rawjson.String(rawjson.Get(item, key))
		keys = append(keys, text)
	}
	return strings.Join(keys, " ")
}

// two is a bench with two upstreams that are ready: some lists wait for that, but
// not for as long as it may take.
func two(t *testing.T) *bench {
	t.Helper()
	b := start(t, upstream(t, "one", "-full", "-name", "one"), upstream(t, "two", "-full", "-name", "two"))
	for _, name := range []string{"one", "two"} {
		b.registry.Settled(t.Context(), name)
	}
	return b
}

func TestLists(t *testing.T) {
	c := two(t).connect(t, "2025-06-18", "{}")
	for _, row := range [][4]string{
		{"prompts/list", "prompts", "name", "one__plain one__choice one__needs two__plain two__choice two__needs"},
		{"resources/list", "resources", "uri", "test://one own://one mcpx://two/test://one own://two"},
		{"resources/templates/list", "resourceTemplates", "uriTemplate", "item://{id} own://one/{category}/{id} mcpx://two/item://{id} own://two/{category}/{id}"},
	} {
		if got := c.keys(t, row[0], row[1], row[2]); got != row[3] {
			t.Errorf("%s lists %s, want %s", row[0], got, row[3])
		}
	}
	if got := c.ask(t, request("prompts/list", "")); !strings.Contains(got, `{"name":"one__needs","title":"Needs one","arguments":[{"name":"context","required":true},{"name":"style"}],"x-extra":9007199254740993}`) {
		t.Errorf("a definition is not as it came: %s", got)
	}
	for _, cursor := range []string{`5`, `"x"`, `"!!"`, `"bWNweDotMQ"`, `"bWNweDo5OXg"`} {
		c.want(t, "prompts/list", `{"cursor":`+cursor+`}`, `{"code":-32602,"message":"Invalid params: \"cursor\" is not one that mcpx gave","data":{"detail":"\"cursor\" is not one that mcpx gave"}}`)
	}
}

// TestRelayedRequests: requests reach the upstream that they name, and its answers
// come back as they are. TestRelay of the executor has all cases.
func TestRelayedRequests(t *testing.T) {
	c := two(t).connect(t, "2025-06-18", "{}")
	for _, row := range [][3]string{
		{"prompts/get", `{"name":"two__choice","arguments":{"style":"x"}}`, `{"messages":[{"role":"user","content":{"type":"text","text":"{\"arguments\":{\"style\":\"x\"},\"name\":\"choice\"}"}}],"x-kept":true}`},
		{"resources/read", `{"uri":"mcpx://two/test://one"}`, `{"contents":[{"uri":"mcpx://two/test://one","text":"this is test://one of two","x":9007199254740993},{"uri":"other://part","blob":"AA=="}]}`},
		{"resources/read", `{"uri":"nobody://knows"}`, `{"code":-32002,"message":"Resource not found: nobody://knows","data":{"uri":"nobody://knows"}}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"one__needs"}}`, `{"completion":{"values":["{\"ref\":{\"type\":\"ref/prompt\",\"name\":\"needs\"}}"],"total":1,"hasMore":false}}`},
	} {
		c.want(t, row[0], row[1], row[2])
	}
}

func TestSubscriptions(t *testing.T) {
	c := two(t).connect(t, "2025-06-18", "{}")
	for _, uri := range []string{"test://one", "mcpx://two/test://one"} {
		c.want(t, "resources/subscribe", `{"uri":"`+uri+`"}`, `{}`)
	}
	for _, server := range []string{"one", "two"} {
		c.ask(t, request("tools/call", `{"name":"exec","arguments":{"server_name":"`+server+`","tool_name":"say","arguments":{"method":"notifications/resources/updated","params":[{"uri":"test://one"},{"uri":"test://other"}]}}}`))
	}
	for _, uri := range []string{"test://one", "mcpx://two/test://one"} {
		if got, want := c.next(t, "updated"), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"`+uri+`"}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	c.want(t, "resources/unsubscribe", `{"uri":"test://one"}`, `{}`)
	c.want(t, "resources/subscribe", `{"uri":"nobody://knows"}`, `{"code":-32002,"message":"Resource not found: nobody://knows","data":{"uri":"nobody://knows"}}`)
	c.want(t, "resources/unsubscribe", `{}`, `{"code":-32602,"message":"Invalid params: \"uri\" must be the URI of a resource","data":{"detail":"\"uri\" must be the URI of a resource"}}`)
}

// exec is the params of a call to a tool of the server one.
func exec(tool, arguments string) string {
	return `{"name":"exec","arguments":{"server_name":"one","tool_name":"` + tool + `","arguments":` + arguments + `},"_meta":{"progressToken":"tok"}}`
}

func TestUpstreamsAskTheClient(t *testing.T) {
	b := start(t, upstream(t, "one"))
	c := b.connect(t, "2025-06-18", `{"sampling":{},"roots":{},"elicitation":{}}`)
	answers := make(chan string, 1)
	go func() {
		answers <- c.ask(t, request("tools/call", exec("ask", `{"method":"sampling/createMessage","params":{"temperature":0}}`)))
	}()
	if got, want := c.next(t, "sampling"), `{"jsonrpc":"2.0","id":"mcpx-1","method":"sampling/createMessage","params":{"temperature":0}}`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if got := c.ask(t, `{"jsonrpc":"2.0","id":"mcpx-1","result":{"role":"assistant","n":9007199254740993}}`); got != "" {
		t.Errorf("an answer was answered with %s", got)
	}
	if got := <-answers; !strings.Contains(got, `{\"role\":\"assistant\",\"n\":9007199254740993}`) {
		t.Errorf("got %s", got)
	}
	c.ask(t, `{"jsonrpc":"2.0","id":"mcpx-1","result":{}}`) // late: nobody waits any more

	// What the client cannot do is answered for it.
	got := c.ask(t, request("tools/call", exec("ask", `{"method":"elicitation/create","params":{"mode":"url"}}`)))
	if want := `the client connected to mcpx has no \\\"elicitation.url\\\" capability`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	plain := b.connect(t, "2025-06-18", `{}`)
	got = plain.ask(t, request("tools/call", exec("ask", `{"method":"roots/list"}`)))
	if want := `roots/list: the client connected to mcpx has no \\\"roots\\\" capability`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	plain.want(t, "roots/list", "", `{"roots":[]}`)
}

func TestRoots(t *testing.T) {
	b := start(t, upstream(t, "one"))
	c := b.connect(t, "2025-06-18", `{"roots":{"listChanged":true}}`)
	answers := make(chan string, 1)
	go func() { answers <- c.ask(t, request("roots/list", "")) }()
	c.next(t, `"roots/list"`)
	c.ask(t, `{"jsonrpc":"2.0","id":"mcpx-1","error":{"code":-32000,"message":"not now","data":1}}`)
	if got, want := <-answers, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"not now","data":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c.ask(t, request("tools/call", exec("pid", "{}"))) // the upstream is there
	c.ask(t, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	if got := c.ask(t, request("tools/call", exec("heard", `{"method":"notifications/roots/list_changed"}`))); !strings.Contains(got, `"text":"1"`) {
		t.Errorf("the upstream heard %s", got)
	}
}

func TestACancelledCallWithdrawsWhatItAsked(t *testing.T) {
	c := start(t, upstream(t, "one")).connect(t, "2025-06-18", `{"roots":{}}`)
	done := c.begin(t, request("tools/call", exec("ask", `{"method":"roots/list"}`)))
	c.next(t, `"roots/list"`)
	c.ask(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if got := <-done; got != nil {
		t.Errorf("a cancelled call was answered with %s", got)
	}
	if got, want := c.next(t, "cancelled"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mcpx-1","reason":"cancelled by the client"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestProgressAndLogMessages(t *testing.T) {
	c := start(t, upstream(t, "one", "-full")).connect(t, "2025-06-18", `{}`)
	c.ask(t, request("tools/call", exec("progress", `{"steps":2}`)))
	for i := range 2 {
		want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"tok","progress":%d,"total":2}}`, i+1)
		if got := c.next(t, "progress"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	c.want(t, "logging/setLevel", `{"level":"warn"}`, `{"_meta":{"success":true,"level":"warn","message":"Log level set to warn"}}`)
	c.ask(t, request("tools/call", exec("say", `{"method":"notifications/message","params":[{"level":"info","data":1},{"level":"warning","data":2},{"level":"alert","logger":"db","data":3}]}`)))
	for _, want := range []string{`{"level":"warning","data":2,"logger":"one"}`, `{"level":"alert","logger":"one/db","data":3}`} {
		if got := c.next(t, "notifications/message"); got != `{"jsonrpc":"2.0","method":"notifications/message","params":`+want+`}` {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestBatches(t *testing.T) {
	b := start(t)
	batch := `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},5,{"jsonrpc":"2.0","id":"x","method":"nope"}]`
	c := b.connect(t, "2025-03-26", "{}")
	for text, want := range map[string]string{
		batch: `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is one JSON object"}},{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method 'nope' not found"}}]`,
		`[]`:  `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: an empty batch"}}`,
		`[` + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, maxBatch) + `5]`:           `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a batch has at most 1000 messages, this one has 1001; send it in parts"}}`,
		`[{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}]`: `[{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Invalid request: initialize must not be part of a batch"}}]`,
		`[{"id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]`:                        `[{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\""}},{"jsonrpc":"2.0","id":8,"result":{}}]`,
		`[{`: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: not valid JSON"}}`,
		`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`: ``,
	} {
		if got := c.ask(t, text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	later := b.connect(t, "2025-06-18", "{}")
	if got := later.ask(t, batch); !strings.Contains(got, "-32600") {
		t.Errorf("a batch in 2025-06-18 was answered with %s", got)
	}
}
