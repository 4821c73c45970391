package registry

import (
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
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

func TestModernRequestsSayWhatTheySpeak(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t, "-modern")})
	one := newRecorder("one")
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
		} {
			if got := string(rawjson.Get(meta, key)); got != want {
				t.Errorf("%s is %s, want %s", key, got, want)
			}
		}
	}
}
