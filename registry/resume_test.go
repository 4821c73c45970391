package registry

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/rawjson"
)

// early ends the stream of a call before its answer. The rest is there for who
// asks for it with the id of the last event.
type early struct {
	calls  atomic.Int64
	asked  atomic.Int64
	resume func(w http.ResponseWriter, last string, answer string)
	id     atomic.Value  // of the call
	held   chan struct{} // closed when the stream of a call, which then is answered on it and stays open, is ended from afar
}

func (e *early) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") != "" {
		e.asked.Add(1)
		e.resume(w, r.Header.Get("Last-Event-ID"), fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"the rest"}]}}`, e.id.Load()))
		return
	}
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	method, _ := rawjson.String(rawjson.Get(body, "method"))
	results := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"early","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}`,
	}
	switch {
	case results[method] != "":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "s")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, rawjson.Get(body, "id"), results[method])
	case method == "tools/call":
		e.calls.Add(1)
		e.id.Store(string(rawjson.Get(body, "id")))
		if e.held != nil {
			events(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"all of it\"}]}}\n\n", e.id.Load()))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			close(e.held)
			return
		}
		events(w, "id: 1\nretry: 1\ndata:\n\n")
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func events(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
}

func TestAStreamThatEndsEarlyIsResumed(t *testing.T) {
	tests := []struct {
		name   string
		resume func(w http.ResponseWriter, last, answer string)
		want   string // the answer, or the error
		asked  int64
	}{
		{"at once", func(w http.ResponseWriter, _, answer string) {
			events(w, "id: 2\ndata: "+answer+"\n\n")
		}, "the rest", 1},
		{"in pieces", func(w http.ResponseWriter, last, answer string) {
			if len(last) < 10 { // so many pieces that none is the last that may be asked for
				events(w, "id: "+last+"1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
				return
			}
			events(w, "data: "+answer+"\n\n")
		}, "the rest", 10},
		{"never", func(w http.ResponseWriter, _, _ string) { events(w, ": nothing\n\n") }, "its stream ended before the answer came", 3},
		{"refused", func(w http.ResponseWriter, _, _ string) { w.WriteHeader(http.StatusBadRequest) }, "the rest of it: HTTP status 400", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := &early{resume: tt.resume}
			remote := httptest.NewServer(server)
			t.Cleanup(remote.Close)
			r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "http"}})
			got, err := callTool(t.Context(), r, "a", "work", "{}")
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if calls, asked := server.calls.Load(), server.asked.Load(); calls != 1 || asked != tt.asked {
				t.Errorf("%d calls sent, the rest asked for %d times; want 1 and %d", calls, asked, tt.asked)
			}
		})
	}
}

// TestAStreamThatDoesNotEndIsEnded: after the answer nothing holds its connection.
func TestAStreamThatDoesNotEndIsEnded(t *testing.T) {
	server := &early{held: make(chan struct{})}
	remote := httptest.NewServer(server)
	t.Cleanup(remote.Close)
	r, _ := run(t, map[string]any{"a": map[string]any{"url": remote.URL, "type": "http"}})
	if got := mustCall(t, r, "a", "work", "{}"); got != "all of it" {
		t.Errorf("got %q", got)
	}
	select {
	case <-server.held:
	case <-time.After(20 * time.Second):
		t.Error("the stream is still open")
	}
}
