package server

import (
	"strings"
	"testing"
)

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
	for _, cursor := range []string{`5`, `"x"`, `"1000"`, `"mcpx:-1"`, `"mcpx:99x"`} {
		c.want(t, "prompts/list", `{"cursor":`+cursor+`}`, `{"code":-32602,"message":"Invalid params: \"cursor\" must be the \"nextCursor\" of a page","data":{"detail":"\"cursor\" must be the \"nextCursor\" of a page"}}`)
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
