package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"mcpx/executor/listing"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// relay passes a request on; an error is its object.
func (b *bench) relay(t *testing.T, method, params string) string {
	t.Helper()
	var result []byte
	var err error
	if method == "tools/call" {
		raw := []byte(params)
		name := append([]byte{}, rawjson.Get(raw, "name")...)
		result, err = b.Call(t.Context(), Call{Client: client("tester"), FlatName: name, Params: raw, Arguments: rawjson.Get(raw, "arguments")})
	} else {
		result, err = b.Relay(t.Context(), Relay{Client: client("tester"), Method: method, Params: []byte(params)})
	}
	var own *rpc.Error
	switch {
	case errors.As(err, &own):
		return string(rpc.AppendError(nil, nil, own)[len(`{"jsonrpc":"2.0","id":null,"error":`):])
	case err != nil:
		return "error: " + err.Error()
	}
	return string(result)
}

func TestRelay(t *testing.T) {
	b := start(t, nil, newUpstream(t, "one", "-full", "-name", "one"), newUpstream(t, "two", "-full", "-name", "two"), newUpstream(t, "bare"), newUpstream(t, "new", "-full", "-only-2026"))
	b.registry.Attach(client("tester"))
	prompt := func(params string) string { // the upstream's answer has the params that it got
		return `{"messages":[{"role":"user","content":{"type":"text","text":` + string(rawjson.AppendString(nil, params)) + `}}],"x-kept":true}`
	}
	contents := func(uri, text string) string {
		return fmt.Sprintf(`{"contents":[{"uri":%q,"text":%q,"x":9007199254740993},{"uri":"other://part","blob":"AA=="}]}`, uri, text)
	}
	completed := func(params string) string {
		return `{"completion":{"values":[` + string(rawjson.AppendString(nil, params)) + `],"total":1,"hasMore":false}}`
	}
	const missing = `{"code":-32602,"message":"Invalid params: Missing required argument 'context'","data":{"argument":"context"}}}`
	for _, row := range []struct{ name, method, params, want string }{
		// Arguments that are absent or empty are not sent, empty strings are, and required ones are checked first.
		{"prompt", "prompts/get", `{"name":"two__needs","arguments":{"context":"c"},"_meta":{"a":1}}`, prompt(`{"arguments":{"context":"c"},"name":"needs"}`)},
		{"prompt without arguments", "prompts/get", `{"name":"one__plain"}`, prompt(`{"name":"plain"}`)},
		{"prompt with empty arguments", "prompts/get", `{"name":"one__plain","arguments":{}}`, prompt(`{"name":"plain"}`)},
		{"prompt with null arguments", "prompts/get", `{"name":"one__plain","arguments":null}`, prompt(`{"name":"plain"}`)},
		{"optional argument is absent", "prompts/get", `{"name":"two__choice","arguments":{}}`, prompt(`{"name":"choice"}`)},
		{"optional argument is empty", "prompts/get", `{"name":"one__choice","arguments":{"style":""}}`, prompt(`{"arguments":{"style":""},"name":"choice"}`)},
		{"optional argument", "prompts/get", `{"name":"one__choice","arguments":{"style":"x"}}`, prompt(`{"arguments":{"style":"x"},"name":"choice"}`)},
		{"required argument is absent", "prompts/get", `{"name":"one__needs"}`, missing},
		{"another argument instead", "prompts/get", `{"name":"one__needs","arguments":{"style":"x"}}`, missing},
		{"required argument is null", "prompts/get", `{"name":"one__needs","arguments":{"context":null}}`, missing},
		{"required argument is empty", "prompts/get", `{"name":"one__needs","arguments":{"context":""}}`, prompt(`{"arguments":{"context":""},"name":"needs"}`)},
		{"unknown prompt", "prompts/get", `{"name":"needs"}`, `{"code":-32602,"message":"Invalid params: Prompt 'needs' not found","data":{"prompt":"needs"}}}`},
		{"no prompt", "prompts/get", `{}`, `{"code":-32602,"message":"Invalid params: \"name\" must be the name of a prompt","data":{"detail":"\"name\" must be the name of a prompt"}}}`},
		{"odd arguments", "prompts/get", `{"name":"one__plain","arguments":5}`, `{"code":-32602,"message":"Invalid params: \"arguments\" must be an object","data":{"detail":"\"arguments\" must be an object"}}}`},

		{"resource", "resources/read", `{"uri":"own://one"}`, contents("own://one", "this is own://one of one")},
		{"first of two", "resources/read", `{"uri":"test://one"}`, contents("test://one", "this is test://one of one")},
		{"clashing resource", "resources/read", `{"uri":"mcpx://two/test://one"}`, contents("mcpx://two/test://one", "this is test://one of two")},
		{"template", "resources/read", `{"uri":"own://two/a/b"}`, contents("own://two/a/b", "this is own://two/a/b of two")},
		{"first of two templates", "resources/read", `{"uri":"item://7"}`, contents("item://7", "this is item://7 of one")},
		{"clashing template", "resources/read", `{"uri":"mcpx://two/item://7"}`, contents("mcpx://two/item://7", "this is item://7 of two")},
		{"unknown resource", "resources/read", `{"uri":"no://one"}`, `{"code":-32002,"message":"Resource not found: no://one","data":{"uri":"no://one"}}}`},
		{"the upstream's own error", "resources/read", `{"uri":"own://one/missing/x"}`, `{"code":-32002,"message":"no such resource","data":{"uri":"own://one/missing/x","service":"one"}}}`},
		{"no URI", "resources/read", `{"uri":5}`, `{"code":-32602,"message":"Invalid params: \"uri\" must be the URI of a resource","data":{"detail":"\"uri\" must be the URI of a resource"}}}`},
		{"subscribe", "resources/subscribe", `{"uri":"test://one"}`, `{}`},
		{"unsubscribe", "resources/unsubscribe", `{"uri":"test://one"}`, `{}`},
		{"subscribe to nothing", "resources/subscribe", `{"uri":"no://one"}`, `{"code":-32002,"message":"Resource not found: no://one","data":{"uri":"no://one"}}}`},
		{"unsubscribe from nothing", "resources/unsubscribe", `{"uri":"no://one"}`, `{"code":-32002,"message":"Resource not found: no://one","data":{"uri":"no://one"}}}`},

		{"complete a prompt", "completion/complete", `{"ref":{"type":"ref/prompt","name":"one__needs","title":"x"},"argument":{"name":"context","value":"t"}}`, completed(`{"argument":{"name":"context","value":"t"},"ref":{"type":"ref/prompt","name":"needs","title":"x"}}`)},
		{"complete a template", "completion/complete", `{"ref":{"type":"ref/resource","uri":"mcpx://two/item://{id}"},"context":{"arguments":{"a":"b"}}}`, completed(`{"context":{"arguments":{"a":"b"}},"ref":{"type":"ref/resource","uri":"item://{id}"}}`)},
		{"complete where it cannot", "completion/complete", `{"ref":{"type":"ref/resource","uri":"own://test"},"argument":{"name":"id","value":""}}`, `{"completion":{"values":[]}}`},
		{"complete nothing", "completion/complete", `{"ref":{"type":"ref/resource","uri":"no://one"}}`, `{"code":-32602,"message":"Invalid params: there is no ref/resource 'no://one' to complete","data":{"ref":"no://one"}}}`},
		{"complete no prompt", "completion/complete", `{"ref":{"type":"ref/prompt","name":"nope"}}`, `{"code":-32602,"message":"Invalid params: there is no ref/prompt 'nope' to complete","data":{"ref":"nope"}}}`},
		{"complete without a ref", "completion/complete", `{}`, `{"code":-32602,"message":"Invalid params: \"ref.type\" must be \"ref/prompt\" or \"ref/resource\"","data":{"detail":"\"ref.type\" must be \"ref/prompt\" or \"ref/resource\""}}}`},

		{"tool", "tools/call", `{"name":"bare__echo","arguments":{"text":"hi"}}`, `{"content":[{"type":"text","text":"hi"}]}`},
		{"tool without a name", "tools/call", `{"arguments":{}}`, `{"code":-32602,"message":"Invalid params: \"name\" must be the name of a tool","data":{"detail":"\"name\" must be the name of a tool"}}}`},
		{"odd arguments of a tool", "tools/call", `{"name":"bare__echo","arguments":[]}`, `{"code":-32602,"message":"Invalid params: \"arguments\" must be an object","data":{"detail":"\"arguments\" must be an object"}}}`},
		{"unknown tool", "tools/call", `{"name":"echo"}`, `{"code":-32601,"message":"Tool 'echo' not found","data":{"tool":"echo"}}}`},
		{"invalid arguments", "tools/call", `{"name":"bare__echo"}`, "error: arguments.text: required\necho(text: string, …)"},
		{"a tool's own error", "tools/call", `{"name":"bare__fail"}`, `{"code":-32042,"message":"it did not work","data":{"detail":9007199254740993,"service":"bare"}}}`},
		{"a crash", "tools/call", `{"name":"bare__crash","arguments":{"status":3}}`, `{"code":-32603,"message":"server \"bare\" stopped during the call: exited with status 3; whether the call took effect is unknown, and mcpx does not repeat it","data":{"service":"bare"}}}`},
	} {
		if got := b.relay(t, row.method, row.params); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
	if e := b.last(); e.Server != "bare" || e.Tool != "crash" || e.Outcome != "lost" || e.Client != "tester" {
		t.Errorf("the last event is %+v", e)
	}
}

func TestServiceErrorKeepsOddData(t *testing.T) {
	for data, want := range map[string]string{
		``:              `{"service":"a"}`,
		`"text"`:        `{"data":"text","service":"a"}`,
		`{"service":1}`: `{"service":"a"}`,
	} {
		var own *rpc.Error
		err := serviceError("a", &rpc.Error{Code: 5, Message: "m", Data: []byte(data)})
		if !errors.As(err, &own) || string(own.Data) != want {
			t.Errorf("data %s becomes %s, want %s", data, own.Data, want)
		}
	}
	if err := serviceError("a", context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled call is %v", err)
	}
}

func TestExposureFollowsTheCatalog(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a"))
	if _, err := b.Inspect(t.Context(), nil, "a", ""); err != nil {
		t.Fatal(err)
	}
	x := b.Exposure(nil)
	if x != b.Exposure(nil) {
		t.Error("the exposure is made anew though nothing has changed")
	}
	names := func(list []listing.Exposed) (names []string) {
		for _, e := range list {
			names = append(names, e.Name)
		}
		return names
	}
	if got := names(x.Tools); !slices.Contains(got, "a__echo") {
		t.Errorf("tools %q", got)
	}
	b.exec(t, `{"server_name":"a","tool_name":"change","arguments":{"notices":1}}`)
	for limit := 0; !slices.Contains(names(b.Exposure(nil).Tools), "a__extra_0"); limit++ {
		if limit > 1000 {
			t.Fatal("the new tool never shows")
		}
		b.exec(t, `{"server_name":"a","tool_name":"sleep","arguments":{"ms":20}}`)
	}
}
