package replicas

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/config"
	"mcpx/internal/rawjson"
	"mcpx/internal/seal"
	"mcpx/server"
	httpfront "mcpx/server/http"
	"mcpx/server/servertest"
)

const noSuchSession = `404 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"there is no such session; send initialize"}}`

// TestSealedIDs: an ID is valid on every replica that has its key, for one profile, one view
// and one sender. Every other ID has the same answer.
func TestSealedIDs(t *testing.T) {
	first, second := small(t, box(1)), small(t, box(1))
	id := first.open(t, `{"roots":{}}`)
	if !strings.HasPrefix(id, "v1.") || len(id) > 300 {
		t.Errorf("the ID is %s", id)
	}
	expired := sealedState{id: rand.Text(), revision: "2025-06-18", until: time.Now()}
	short := box(1).Seal([]byte("short"), seal.Terms{Label: "default?expose=", Until: time.Now().Add(time.Hour)})
	legacy := events(second.do(t, "GET", "/sse", ""))
	if !legacy.Scan() {
		t.Fatal("no event on /sse")
	}
	_, legacyID, _ := strings.Cut(legacy.Text(), "sessionId=")
	inner := first.copy(t, id).id
	for _, row := range []struct{ name, path, id, credential, want string }{
		{"as it is", "/mcp", id, "", "200 " + result("{}")},
		{"by the profile's name", "/mcp/default", id, "", "200 " + result("{}")},
		{"tampered at its start", "/mcp", "v1." + flipped(id[3]) + id[4:], "", noSuchSession},
		{"tampered in the middle", "/mcp", id[:60] + flipped(id[60]) + id[61:], "", noSuchSession},
		{"tampered at its end", "/mcp", id[:len(id)-2] + flipped(id[len(id)-2]) + id[len(id)-1:], "", noSuchSession},
		{"truncated", "/mcp", id[:len(id)-4], "", noSuchSession},
		{"longer", "/mcp", id + "AAAA", "", noSuchSession},
		{"much longer", "/mcp", "v1." + strings.Repeat("A", 8000), "", noSuchSession},
		{"expired", "/mcp", sealID(box(1), expired, "default?expose="), "", noSuchSession},
		{"of another key", "/mcp", small(t, box(2)).open(t, "{}"), "", noSuchSession},
		{"of another profile", "/mcp/other", id, "", noSuchSession},
		{"of another view", "/mcp?expose=flat", id, "", noSuchSession},
		{"of another sender", "/mcp", id, "Bearer x", noSuchSession},
		{"without the state", "/mcp", short, "", noSuchSession},
		{"not sealed", "/mcp", inner, "", noSuchSession},
		{"of a session of legacy SSE", "/mcp", legacyID, "", noSuchSession},
		{"of another version", "/mcp", "v2" + id[2:], "", noSuchSession},
	} {
		for name, s := range map[string]*site{"the replica that opened it": first, "another replica": second} {
			if got := whole(t, s.do(t, "POST", row.path, request("ping", ""), sessionHeader, row.id, "Authorization", row.credential)); got != row.want {
				t.Errorf("%s, on %s:\n got %s\nwant %s", row.name, name, got, row.want)
			}
		}
	}
}

// flipped returns another character of base64url.
func flipped(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

// TestKeyRotation: a session goes on while the key is replaced, in three steps.
func TestKeyRotation(t *testing.T) {
	steps := []*site{small(t, box(1)), small(t, box(1, 2)), small(t, box(2, 1)), small(t, box(2))}
	ping := func(s *site, id string) string {
		return whole(t, s.do(t, "POST", "/mcp", request("ping", ""), sessionHeader, id))
	}
	for i, s := range steps[:3] { // during a step, replicas of two steps run
		id := s.open(t, "{}")
		for j := max(i-1, 0); j <= i+1; j++ {
			if got := ping(steps[j], id); got != "200 "+result("{}") {
				t.Errorf("an ID of step %d in step %d: %s", i+1, j+1, got)
			}
		}
	}
	if got := ping(steps[3], steps[0].open(t, "{}")); got != noSuchSession {
		t.Errorf("an ID of a key that was removed: %s", got)
	}
	if got := ping(steps[0], steps[2].open(t, "{}")); got != noSuchSession {
		t.Errorf("an ID of a key that is not known yet: %s", got)
	}
}

// TestSealedState: a long ID leaves out what mcpx needs least.
func TestSealedState(t *testing.T) {
	long := `"` + strings.Repeat("x", 2000) + `"`
	for _, row := range []struct{ name, capabilities, want string }{
		{"all fits", `{"roots":{"listChanged":true},"experimental":{"a":1.10}}`, `{"roots":{"listChanged":true},"experimental":{"a":1.10}}`},
		{"unknown capabilities", `{"sampling":{"tools":{}},"experimental":{"a":` + long + `}}`, `{"sampling":{"tools":{}}}`},
		{"long settings", `{"elicitation":{"url":{"a":` + long + `},"form":{}},"roots":{"listChanged":false,"b":` + long + `}}`, `{"roots":{"listChanged":false},"elicitation":{"form":{},"url":{}}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := small(t, box(1))
			r := s.do(t, "POST", "/mcp", request("initialize", `{"protocolVersion":"2025-06-18","capabilities":`+row.capabilities+`}`))
			id := r.Header.Get(sessionHeader)
			if len(id) > maxSealed {
				t.Fatalf("%d characters", len(id))
			}
			text, until := openID(box(1), id, "default?expose=")
			if text == nil {
				t.Fatal("it cannot be opened")
			}
			got := text.state(until)
			if string(got.capabilities) != row.want || got.revision != "2025-06-18" {
				t.Errorf("got %+v with %s", got, got.capabilities)
			}
			if left := time.Until(until); left > sealedTime || left < sealedTime-time.Minute {
				t.Errorf("it is valid for %s", left)
			}
		})
	}
}

// FuzzSealID: whatever a client declares, its ID has at most 1,024 characters, and opens with
// the same ID, sender, revision, program and usable capabilities.
func FuzzSealID(f *testing.F) {
	f.Add(`{"roots":{},"sampling":{"tools":{}},"elicitation":{"url":{}}}`, "ann", "claude-code")
	f.Add(`{"roots":{"listChanged":true},"x":"`+strings.Repeat("y", 1000)+`"}`, strings.Repeat("\x00", 60), strings.Repeat(`"`, 1000))
	f.Add(`{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},"x":"`+strings.Repeat("y", 1000)+`"}`, "ann", strings.Repeat("\x01\u202e\U000e0001é", 300))
	b := box(1)
	f.Fuzz(func(t *testing.T, capabilities, caller, program string) {
		if rawjson.Check([]byte(capabilities)) != nil || rawjson.Kind([]byte(capabilities)) != '{' || len(rawjson.DuplicateKey([]byte(capabilities))) > 0 {
			return
		}
		client := servertest.Bare().NewClient("one", nil)
		client.SetInitialized("2025-06-18", []byte(capabilities))
		name := rawjson.AppendString(nil, program)
		client.SetProgram(append(rawjson.AppendMember(rawjson.AppendMember([]byte("{"), "name", name), "version", name), '}'))
		want := stateOf(client)
		want.id, want.sender, want.until = rand.Text(), sha256.Sum256([]byte(caller)), time.Now().Add(time.Hour)
		id := sealID(b, want, "default")
		if len(id) > maxSealed {
			t.Fatalf("%d characters", len(id))
		}
		text, until := openID(b, id, "default")
		if text == nil {
			t.Fatal("it cannot be opened")
		}
		got := text.state(until)
		if got.id != want.id || got.sender != want.sender || got.revision != want.revision {
			t.Errorf("got %+v, want %+v", got, want)
		}
		again := servertest.Bare().NewClient("two", nil)
		again.SetInitialized(got.revision, got.capabilities)
		again.SetProgram(got.clientInfo)
		if a, b := client.Program(), again.Program(); a != b {
			t.Errorf("program %q, then %q", a, b)
		}
		for _, method := range []string{"roots/list", "sampling/createMessage", "elicitation/create"} {
			for _, params := range []string{`{}`, `{"mode":"url"}`} {
				if a, b := client.Supports(method, []byte(params)), again.Supports(method, []byte(params)); (a == nil) != (b == nil) {
					t.Errorf("%s %s of %s: %v, then %v", method, params, capabilities, a, b)
				}
			}
		}
	})
}

// BenchmarkSession measures a request in a client session, with and without a session key.
func BenchmarkSession(b *testing.B) {
	for name, keys := range map[string]*seal.Box{"plain": nil, "sealed": box(1), "rotating": box(2, 1)} {
		b.Run(name, func(b *testing.B) {
			h := &httpfront.HTTP{Servers: map[string]*server.Server{"default": servertest.Bare()}, Limits: config.Limits{BodyBytes: 10_000, Sessions: 10, SessionIdle: time.Hour}}
			p := New(h, keys, nil)
			if keys != nil {
				h.Replicas = p
			}
			handler := h.Handler()
			post := func(id, message string) *httptest.ResponseRecorder {
				r := postTo(b.Context(), "/mcp", strings.NewReader(message))
				r.Header.Set(sessionHeader, id)
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				return w
			}
			id := post("", request("initialize", `{"protocolVersion":"2025-06-18","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{}},"clientInfo":{"name":"a client","version":"1.2.3"}}`)).Header().Get(sessionHeader)
			if name == "rotating" {
				text, _ := openID(keys, id, "default?expose=")
				id = sealID(box(1), p.copyHere(text.id()).state(), "default?expose=")
			}
			b.ReportAllocs()
			for b.Loop() {
				if w := post(id, request("ping", "")); w.Code != 200 {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
