package registry

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"mcpx/internal/link"
	"mcpx/internal/rawjson"
)

// scripted is a remote upstream that does what a test says; the rest is as plain
// as can be.
type scripted struct {
	call  func(w http.ResponseWriter, id []byte)       // answers tools/call
	reply func(w http.ResponseWriter, body []byte)     // takes what answers its own requests
	stand func(w http.ResponseWriter, r *http.Request) // serves the standing stream
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id := rawjson.Get(body, "id")
	method, _ := rawjson.String(rawjson.Get(body, "method"))
	results := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}`,
		"ping":       `{}`,
	}
	switch {
	case r.Method == http.MethodGet && s.stand != nil:
		s.stand(w, r)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case results[method] != "":
		w.Header().Set("Mcp-Session-Id", "s")
		jsonAnswer(w, id, results[method])
	case method == "tools/call":
		s.call(w, id)
	case method == "" && s.reply != nil:
		s.reply(w, body)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// start runs a registry with the upstream as "a".
func (s *scripted) start(t *testing.T) *Registry {
	t.Helper()
	remote := httptest.NewServer(s)
	t.Cleanup(func() {
		remote.CloseClientConnections()
		remote.Close()
	})
	r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "http"}})
	return r
}

func jsonAnswer(w http.ResponseWriter, id []byte, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// textResult is the result of a call, with a text.
func textResult(text string) string { return `{"content":[{"type":"text","text":"` + text + `"}]}` }

// What a remote upstream sends that is not UTF-8 reaches no client: it could end it.
func TestRemoteMessagesAreUTF8(t *testing.T) {
	for name, call := range map[string]func(w http.ResponseWriter, id []byte){
		"one message": func(w http.ResponseWriter, id []byte) { jsonAnswer(w, id, textResult("a\xffb")) },
		"events": func(w http.ResponseWriter, id []byte) {
			events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id, textResult("a\xffb")))
		},
	} {
		r := (&scripted{call: call}).start(t)
		result, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Params: []byte(`{"name":"work"}`)})
		if want := textResult("a\ufffdb"); err != nil || string(result) != want {
			t.Errorf("%s: %q, %v; want %q", name, result, err, want)
		}
	}
}

// Both sides count their requests: what comes back for an answer to the upstream's
// request is not the answer to mcpx's request with the same id.
func TestWhatAnswersAReplyIsNoAnswer(t *testing.T) {
	for name, back := range map[string]func(w http.ResponseWriter, id []byte){
		"a message": func(w http.ResponseWriter, id []byte) { jsonAnswer(w, id, textResult("not this")) },
		"nothing":   func(http.ResponseWriter, []byte) {},
		"a stream that goes on elsewhere": func(w http.ResponseWriter, _ []byte) {
			events(w, "id: 7\nretry: 1\ndata:\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			replies := make(chan []byte, 2)
			resumed := make(chan string, 10)
			s := &scripted{
				reply: func(w http.ResponseWriter, body []byte) {
					id := rawjson.Get(body, "id")
					back(w, id)
					replies <- id
				},
				call: func(w http.ResponseWriter, id []byte) {
					// The second reply is sent when what came for the first was taken.
					for _, own := range []string{string(id), `"second"`} {
						events(w, `data: {"jsonrpc":"2.0","id":`+own+`,"method":"ping"}`+"\n\n")
						_ = http.NewResponseController(w).Flush()
						select {
						case got := <-replies:
							if string(got) != own {
								t.Errorf("a reply to %s, want %s", got, own)
							}
						case <-time.After(10 * time.Second):
							t.Error("no reply")
						}
					}
					events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", id, textResult("this")))
				},
				stand: func(w http.ResponseWriter, r *http.Request) {
					if last := r.Header.Get("Last-Event-ID"); last != "" {
						resumed <- last
					}
					w.WriteHeader(http.StatusMethodNotAllowed)
				},
			}
			if got := mustCall(t, s.start(t), "a", "work", "{}"); got != "this" {
				t.Errorf("got %q", got)
			}
			if len(resumed) > 0 {
				t.Errorf("the rest after event %s was asked for", <-resumed)
			}
		})
	}
}

// TestAStreamThatDoesNotOpenInTime: the reason is the limit, whoever notices it.
func TestAStreamThatDoesNotOpenInTime(t *testing.T) {
	for name, begin := range map[string]func(w http.ResponseWriter){
		"no answer":   func(http.ResponseWriter) {},
		"no endpoint": func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
	} {
		t.Run(name, func(t *testing.T) {
			remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				begin(w)
				<-r.Context().Done()
			}))
			t.Cleanup(remote.Close)
			r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "sse", "startup_timeout": 0.2}})
			u := r.Settled(t.Context(), "a")
			if u.Cause != link.CauseTimeout || u.Reason != `not ready within 200ms (its "startup_timeout")` {
				t.Errorf("cause %q, reason %s", u.Cause, u.Reason)
			}
		})
	}
}
