package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// remoteUpstream starts an MCP server over HTTP with one tool, whose calls the test
// answers.
func remoteUpstream(t *testing.T, call func(w http.ResponseWriter, r *http.Request, id string)) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		m := parse(string(text))
		answer := func(result string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		}
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "initialize":
			answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"remote","version":"1"}}`)
		case m.Method == "tools/list":
			answer(`{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}`)
		case m.Method == "tools/call":
			call(w, r, string(m.ID))
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// repeat writes a text until the connection ends.
func repeat(w io.Writer, text string) {
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// TestHostileRemotes: the same holds for an upstream over HTTP.
func TestHostileRemotes(t *testing.T) {
	filler := strings.Repeat("x", 1<<16)
	stream := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/event-stream") }
	const quick = `server "bad": timed out: no answer and no progress within 2s (its "timeout"); the call was canceled`
	const tooLong = "has more than 1048576 bytes (limits.message_bytes)"
	for _, c := range []struct {
		name, want string
		call       func(w http.ResponseWriter, r *http.Request, id string)
	}{
		{"a gzip bomb", "its answer " + tooLong, func(w http.ResponseWriter, _ *http.Request, id string) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":{"text":"`, id)
			for range 16_000 { // 1 GB
				if _, err := io.WriteString(z, filler); err != nil {
					return
				}
			}
			_ = z.Close()
		}},
		{"an endless body", "its answer " + tooLong, func(w http.ResponseWriter, _ *http.Request, id string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"text":"`, id)
			repeat(w, filler)
		}},
		{"an endless line of an event", "its stream ended before the answer came: an event " + tooLong, func(w http.ResponseWriter, _ *http.Request, _ string) {
			stream(w)
			_, _ = io.WriteString(w, "data: ")
			repeat(w, filler)
		}},
		{"an endless event", "its stream ended before the answer came: an event " + tooLong, func(w http.ResponseWriter, _ *http.Request, _ string) {
			stream(w)
			repeat(w, "data: "+filler+"\n")
		}},
		{"endless events", quick, func(w http.ResponseWriter, _ *http.Request, _ string) {
			stream(w)
			repeat(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard/of\",\"params\":{}}\n\n: a comment\n\n")
		}},
		{"endless events that are no messages", quick, func(w http.ResponseWriter, _ *http.Request, _ string) {
			stream(w)
			repeat(w, "data: nonsense\n\ndata: {\n\nid: 5\nretry: 1\n\n")
		}},
		{"no answer", quick, func(_ http.ResponseWriter, r *http.Request, _ string) { <-r.Context().Done() }},
		{"an answer nested too deep", "it answered with a message that is not JSON-RPC: Parse error: JSON nested too deep", func(w http.ResponseWriter, _ *http.Request, id string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s%s}`, id, strings.Repeat("[", 300), strings.Repeat("]", 300))
		}},
		{"an endless error", "HTTP status 500 Internal Server Error", func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.WriteHeader(http.StatusInternalServerError)
			repeat(w, filler)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			besideOthers(t, c.name)
			bad := map[string]any{"url": remoteUpstream(t, c.call)}
			if c.want == quick {
				bad["timeout"], bad["max_timeout"] = "2s", "1m"
			}
			hostile{tool: "go", args: "{}", want: c.want}.run(t, bad)
		})
	}
}

// TestManyLargeAnswers: the answers that one remote upstream sends at the same time are
// bounded together.
func TestManyLargeAnswers(t *testing.T) {
	calls := 24 // each answer would take 64 MiB and more
	if race {
		calls = 6 // memory is not checked
	}
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = io.WriteString(z, `{"jsonrpc":"2.0","result":{"text":"`)
	for range 80 << 20 >> 16 {
		_, _ = z.Write(bytes.Repeat([]byte("x"), 1<<16))
	}
	_ = z.Close()
	bad := remoteUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	p := start(t, map[string]any{"mcpServers": map[string]any{"bad": map[string]any{"url": bad}}}, options{})
	p.initialize()
	var ids []string
	for range calls {
		ids = append(ids, p.nextID())
		p.send(ids[len(ids)-1], "tools/call", execParams("bad", "go", "{}"))
	}
	for _, id := range ids {
		if got := textOf(t, string(p.answer(id).Result), true); !strings.Contains(got, "its answer has more than 67108864 bytes (limits.message_bytes)") {
			t.Fatalf("got %s", clip(got))
		}
	}
	p.staysSmall(320)
}
