package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
)

// supports2026 is the response of an upstream that supports 2026-07-28.
const supports2026 = `"result":{"supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`

// session2026 runs a test of a session that speaks 2026-07-28.
func session2026(t *testing.T, test func(t *testing.T, f fixture)) {
	t.Helper()
	inTime(t, func(t *testing.T, f fixture) {
		f.peer.answer("server/discover", supports2026, 0)
		handshake, err := f.Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.Speak2026(handshake)
		synctest.Wait()
		test(t, f)
	})
}

// requireInput makes the upstream require input of its client that many times in a call.
func requireInput(p *peer, rounds int, inputs string) {
	p.on("tools/call", func(m rpc.Message) {
		state, _ := rawjson.String(rawjson.Get(m.Params, "requestState"))
		if len(state) == rounds {
			p.respond(m.ID, done)
			return
		}
		p.respond(m.ID, fmt.Sprintf(`"result":{"resultType":"input_required","inputRequests":%s,"requestState":"%s."}`, inputs, state))
	})
}

// oneInput is a round with one request for roots.
const oneInput = `{"one":{"method":"roots/list","params":{"x":1}}}`

// TestMetaOfRequests: every request of 2026-07-28 has the core keys of that revision as mcpx
// sets them. Earlier upstreams get no such keys. All other keys of the client pass, also those
// of extensions.
func TestMetaOfRequests(t *testing.T) {
	const extensions = `"io.modelcontextprotocol/related-task":{"taskId":"1"},"io.modelcontextprotocol/ui":{"a": 1},"io.modelcontextprotocol/x/y":9007199254740993`
	const clientMeta = `{"trace":1,"io.modelcontextprotocol/protocolVersion":"1999-01-01","io.modelcontextprotocol\/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{},` +
		extensions + `,"io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/serverInfo":{},"io.modelcontextprotocol/subscriptionId":1}`
	send := func(t *testing.T, f fixture) []byte {
		one := inputClient{&client{id: "one"}, `{"sampling":{"tools":{}},"roots":null,"tasks":{},"extensions":{"x/y":{}}}`, "2025-11-25"}
		f.peer.answer("tools/call", done, 0)
		_, err := f.Call(t.Context(), Request{Method: "tools/call", Client: one, Meta: []byte(clientMeta)}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return rawjson.With(rawjson.Get(f.peer.got("tools/call")[0].Params, "_meta"), "progressToken", nil)
	}
	session2026(t, func(t *testing.T, f fixture) {
		meta := send(t, f)
		for key, want := range map[string]string{
			"trace":                                      "1",
			"io.modelcontextprotocol/related-task":       `{"taskId":"1"}`,
			"io.modelcontextprotocol/ui":                 `{"a": 1}`,
			"io.modelcontextprotocol/x/y":                `9007199254740993`,
			"io.modelcontextprotocol/serverInfo":         "",
			"io.modelcontextprotocol/subscriptionId":     "",
			"io.modelcontextprotocol/protocolVersion":    `"2026-07-28"`,
			"io.modelcontextprotocol/logLevel":           `"warning"`,
			"io.modelcontextprotocol/clientInfo":         `{"name":"mcpx","version":"1.2.3"}`,
			"io.modelcontextprotocol/clientCapabilities": `{"sampling":{"tools":{}}}`,
		} {
			if got := string(rawjson.Get(meta, key)); got != want {
				t.Errorf("%s is %s, want %s", key, got, want)
			}
		}
	})
	inTime(t, func(t *testing.T, f fixture) {
		if got := string(send(t, f)); got != `{"trace":1,`+extensions+`}` {
			t.Errorf("an earlier upstream gets %s", got)
		}
	})
}

// TestRounds: a call is made again with the client's responses until the upstream has a
// result. Each bound ends it with an error.
func TestRounds(t *testing.T) {
	var tooMany []string
	for i := range maxInputs + 1 {
		tooMany = append(tooMany, fmt.Sprintf(`"%d":{"method":"roots/list"}`, i))
	}
	rejects := func(context.Context) ([]byte, error) { return nil, errors.New("User rejected") }
	one := &client{id: "one"}
	for _, c := range []struct {
		name   string
		client Client
		rounds int
		inputs string
		err    string
	}{
		{"no input", one, 0, oneInput, ""},
		{"input", one, 3, oneInput, ""},
		{"several inputs", inputClient{client: one}, 1, `{"a":{"method":"roots/list"},"b":{"method":"sampling/createMessage"}}`, ""},
		{"client rejects", &client{id: "two", reply: rejects}, 1, oneInput, "User rejected"},
		{"no client", nil, 1, oneInput, "the upstream requires input of a client, but mcpx made the call"},
		{"unknown method", one, 1, `{"one":{"method":"tasks/list"}}`, `the upstream requests "tasks/list", which clients do not know`},
		{"too many inputs", one, 1, "{" + strings.Join(tooMany, ",") + "}", "the upstream requires more than 100 inputs at once"},
		{"too many rounds", one, maxRounds, oneInput, "the upstream required input more than 10 times"},
	} {
		t.Run(c.name, func(t *testing.T) {
			session2026(t, func(t *testing.T, f fixture) {
				requireInput(f.peer, c.rounds, c.inputs)
				if _, err := f.call(t.Context(), c.client); text(err) != c.err {
					t.Errorf("error %v, want %q", err, c.err)
				}
				if held := f.peer.held.Load(); held != 0 {
					t.Errorf("the room of %d messages is still held", held)
				}
				if c.err != "" || c.rounds == 0 {
					return
				}
				calls := f.peer.got("tools/call")
				if len(calls) != c.rounds+1 {
					t.Fatalf("%d requests, want %d", len(calls), c.rounds+1)
				}
				responses := rawjson.Get(calls[c.rounds].Params, "inputResponses")
				for key := range rawjson.Members([]byte(c.inputs)) {
					if got := string(rawjson.Get(responses, key)); got != `{"from":"one"}` {
						t.Errorf("input %s is %s", key, got)
					}
				}
			})
		})
	}
}

// TestRoundsAreOneCall: if the upstream dies between rounds, the call is lost at once. It
// counts as activity meanwhile.
func TestRoundsAreOneCall(t *testing.T) {
	for _, c := range []struct {
		name string
		die  func(f fixture, release func())
	}{
		{"while its client thinks", func(f fixture, _ func()) { f.peer.die() }},
		{"as the next round is sent", func(f fixture, release func()) {
			f.peer.on("tools/call", func(rpc.Message) { f.peer.die() }) // Send fails
			release()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			session2026(t, func(t *testing.T, f fixture) {
				one := &client{id: "one"}
				release := one.hold()
				requireInput(f.peer, 1, oneInput)
				_, cancel := f.begin(t, one)
				if _, isBusy := f.Activity(); !isBusy {
					t.Error("it is idle between rounds")
				}
				c.die(f, release)
				synctest.Wait()
				if one.waiting.Load() != 0 {
					t.Error("its client still has a request")
				}
				var lost *Lost // and not errEnough, which comes too late
				if err := cancel(); !errors.As(err, &lost) || lost.Reason != "died on purpose" {
					t.Errorf("error %v, want that it was lost", err)
				}
				if _, isBusy := f.Activity(); isBusy {
					t.Error("it is busy after the call")
				}
			})
		})
	}
}

// TestRoundsHaveOneLimit: max_timeout covers all rounds of a call together.
func TestRoundsHaveOneLimit(t *testing.T) {
	session2026(t, func(t *testing.T, f fixture) {
		requireInput(f.peer, 3, oneInput)
		slow := &client{id: "one", reply: func(ctx context.Context) ([]byte, error) {
			select {
			case <-time.After(8 * time.Minute):
				return []byte("{}"), nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}}
		begin := time.Now()
		_, err := f.call(t.Context(), slow)
		var late *Timeout
		if took := time.Since(begin); took != 15*time.Minute || !errors.As(err, &late) || late.Key != "max_timeout" {
			t.Errorf("it ended after %s: %v", took, err)
		}
	})
}
