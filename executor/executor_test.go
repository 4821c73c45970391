package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/registry/child"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

func TestMain(m *testing.M) {
	child.WatchIfAsked()
	mcptest.Main()
	os.Exit(m.Run())
}

// newUpstream returns an entry of mcp_servers.
func newUpstream(t *testing.T, name string, flags ...string) map[string]any {
	u := mcptest.Upstream(t, flags...)
	u["name"] = name
	return u
}

// toolsFile is the flag of an upstream with these tools too. Called, each of
// them says its name and what arguments it got.
func toolsFile(t *testing.T, tools ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(file, []byte("["+strings.Join(tools, ",")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-tools-file", file}
}

// bench is an Executor over running upstreams, and what it reports.
type bench struct {
	*Executor
	log logText

	mu     sync.Mutex
	events []Event
}

// logText is a log that goroutines may write to.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// parse reads a config with these upstreams and limits.
func parse(t *testing.T, limits map[string]any, upstreams ...map[string]any) *config.Config {
	t.Helper()
	file := map[string]any{"mcp_servers": upstreams}
	if limits != nil {
		file["limits"] = limits
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(filepath.Join(t.TempDir(), "config.json"), text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// idle is an Executor whose upstreams are never started.
func idle(c *config.Config) *Executor {
	return New(registry.New(&c.Profiles[0], registry.Options{}), c, &c.Profiles[0], Options{})
}

// start is an Executor whose upstreams run until the test ends.
func start(t *testing.T, limits map[string]any, upstreams ...map[string]any) *bench {
	t.Helper()
	mcptest.NothingLeft(t)
	c := parse(t, limits, upstreams...)
	b := &bench{}
	log := zerolog.New(&b.log)
	w := child.NewWatcher(log)
	r := registry.New(&c.Profiles[0], registry.Options{Log: log, Version: "1.2.3", MessageBytes: 8 << 20, ConnectsAtOnce: 4, Watcher: w})
	b.Executor = New(r, c, &c.Profiles[0], Options{Log: log, Observers: Observers{func(e Event) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events = append(b.events, e)
	}}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.Close()
	})
	return b
}

// last is the newest event.
func (b *bench) last() Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.events[len(b.events)-1]
}

// exec makes the call of these arguments of exec; it returns the text of the
// answer, or of the error after "error: ".
func (b *bench) exec(t *testing.T, arguments string) string {
	t.Helper()
	call := ParseExec([]byte(arguments))
	call.Client = client("tester")
	result, err := b.Call(t.Context(), call)
	if err != nil {
		return "error: " + err.Error()
	}
	return textOf(t, result)
}

// textOf is the text of a result that has no other content.
func textOf(t *testing.T, result []byte) string {
	t.Helper()
	var answer struct{ Content []struct{ Type, Text string } }
	if err := json.Unmarshal(result, &answer); err != nil || len(answer.Content) != 1 || answer.Content[0].Type != "text" {
		t.Fatalf("result %s: %v", result, err)
	}
	return answer.Content[0].Text
}

// client is one that is never asked or told anything.
type client string

func (c client) ID() string { return string(c) }

func (c client) Owner() string { return string(c) }

func (c client) Caller() *policy.Caller { return nil }

func (c client) Request(context.Context, string, []byte) ([]byte, error) {
	return nil, errors.New("not to be asked")
}

func (c client) Notify(string, []byte) {}

// tool returns a tool with that definition.
func tool(t testing.TB, raw string) *lists.Tool {
	t.Helper()
	name, ok := rawjson.String(rawjson.Get([]byte(raw), "name"))
	if !ok || rawjson.Check([]byte(raw)) != nil {
		t.Fatalf("no tool: %s", raw)
	}
	return live.NewUpstream("a", []lists.Item{{Key: name, Raw: []byte(raw)}}).Tool(name)
}

// upstreamOf returns an upstream with these tools that is always ready.
func upstreamOf(name string, tools []*lists.Tool) *live.Upstream {
	items := make([]lists.Item, len(tools))
	for i, t := range tools {
		items[i] = lists.Item{Key: t.Name, Raw: t.Raw}
	}
	return live.NewUpstream(name, items)
}

// TestDoReturnsTheResultAsItCame: byte for byte, if it is an object. Clients never
// settle a call whose result is none.
func TestDoReturnsTheResultAsItCame(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a"))
	for result, want := range map[string]string{
		`{"content":[{"type":"text","text":"hi"}]}`: "",
		`{"content":[ {"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"hologram","id":9007199254740993} ],"structuredContent":{"a": 1.0},"isError":false,"_meta":{"x":1},"more":[1e-400]}`: "",
		`{"content":[],"isError":true}`: "",
		`{}`:                            "",
		`null`:                          noObject,
		`[1]`:                           noObject,
		`"text"`:                        noObject,
		`5`:                             noObject,
	} {
		got, err := b.Call(t.Context(), Call{Server: "a", Tool: "raw", Arguments: []byte(`{"result":` + result + `}`)})
		if want != "" && (err == nil || err.Error() != want) || want == "" && (err != nil || string(got) != result) {
			t.Errorf("%s: got %s, %v, want %s", result, got, err, want)
		}
	}
}

const noObject = `the call to server "a" failed: it answered tools/call with a result that is not an object`

func TestDoPassesArgumentsMetaAndProgress(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a"))
	arguments := `{"big":9007199254740993, "list":[ 1,2 ],"tiny":1e-400,"text":"\u00e9\ud83d\ude00"}`
	for meta, want := range map[string]string{
		``:                                    `"_meta":{"progressToken":N}`,
		`null`:                                `"_meta":{"progressToken":N}`,
		`5`:                                   `"_meta":{"progressToken":N}`,
		`{"progressToken":"mine","trace":[]}`: `"_meta":{"progressToken":N,"trace":[]}`,
	} {
		got, err := b.Call(t.Context(), Call{Server: "a", Tool: "params", Arguments: []byte(arguments), Meta: []byte(meta)})
		if err != nil {
			t.Fatal(err)
		}
		params := []byte(textOf(t, got))
		token := string(rawjson.Get(rawjson.Get(params, "_meta"), "progressToken"))
		want = "{" + strings.Replace(want, "N", token, 1) + `,"name":"params","arguments":` + arguments + "}"
		if string(params) != want {
			t.Errorf("_meta %s: the upstream got %s, want %s", meta, params, want)
		}
	}
	var notes []string
	_, err := b.Call(t.Context(), Call{Server: "a", Tool: "progress", Arguments: []byte(`{"steps":2}`), Progress: func(params []byte) {
		notes = append(notes, string(rawjson.Get(params, "progress")))
	}})
	if want := "[1 2]"; err != nil || fmt.Sprint(notes) != want {
		t.Errorf("progress %v, %v, want %v", notes, err, want)
	}
}

func TestEveryCallIsOneEvent(t *testing.T) {
	slow := newUpstream(t, "slow")
	slow["timeout"] = 0.05
	b := start(t, nil, newUpstream(t, "a"), slow, newUpstream(t, "exits", "-exit", "3"))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	ofClient, cancelCause := context.WithCancelCause(t.Context())
	cancelCause(errors.New("the client has had enough"))
	late, cancelLate := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancelLate()
	<-late.Done()
	for _, row := range []struct {
		name string
		ctx  context.Context
		call Call
		want Event
	}{
		{"ok", nil, Call{Server: "a", Tool: "echo", Arguments: []byte(`{"text":"hi"}`)}, Event{Outcome: "ok", Server: "a", Tool: "echo", BytesIn: 13, BytesOut: 41}},
		{"ok, of mcpx", nil, Call{Server: "mcpx", Tool: "schema", Arguments: []byte(`{"server":"a","tool":"echo"}`)}, Event{Outcome: "ok", Server: "mcpx", Tool: "schema", BytesIn: 28, BytesOut: -1}},
		{"the name put right", nil, Call{Tool: "a__echo", Arguments: []byte(`{"text":"hi"}`)}, Event{Outcome: "ok", Server: "a", Tool: "echo", BytesIn: 13, BytesOut: 41}},
		{"unknown server", nil, Call{Server: "b", Tool: "echo"}, Event{Outcome: "not_found", Server: "b", Tool: "echo"}},
		{"unknown tool", nil, Call{Server: "a", Tool: "b"}, Event{Outcome: "not_found", Server: "a", Tool: "b"}},
		{"no tool", nil, Call{Server: "a"}, Event{Outcome: "not_found", Server: "a"}},
		{"invalid", nil, Call{Server: "a", Tool: "echo", Arguments: []byte(`{}`)}, Event{Outcome: "invalid", Server: "a", Tool: "echo", BytesIn: 2}},
		{"unavailable", nil, Call{Server: "exits", Tool: "echo"}, Event{Outcome: "unavailable", Server: "exits", Tool: "echo"}},
		{"the upstream's error", nil, Call{Server: "a", Tool: "fail"}, Event{Outcome: "error", Server: "a", Tool: "fail"}},
		{"timeout", nil, Call{Server: "slow", Tool: "sleep", Arguments: []byte(`{"ms":60000}`)}, Event{Outcome: "timeout", Server: "slow", Tool: "sleep", BytesIn: 12}},
		{"cancelled", canceled, Call{Server: "a", Tool: "sleep", Arguments: []byte(`{"ms":60000}`)}, Event{Outcome: "cancelled", Server: "a", Tool: "sleep", BytesIn: 12}},
		{"canceled for a reason", ofClient, Call{Server: "a", Tool: "sleep", Arguments: []byte(`{"ms":60000}`)}, Event{Outcome: "cancelled", Server: "a", Tool: "sleep", BytesIn: 12}},
		{"canceled, of an unknown server", canceled, Call{Server: "b", Tool: "echo"}, Event{Outcome: "not_found", Server: "b", Tool: "echo"}},
		{"out of time", late, Call{Server: "a", Tool: "sleep", Arguments: []byte(`{"ms":60000}`)}, Event{Outcome: "timeout", Server: "a", Tool: "sleep", BytesIn: 12}},
		{"no such handle", nil, Call{Server: "mcpx", Tool: "read_result", Arguments: []byte(`{"id":"r1"}`)}, Event{Outcome: "failed", Server: "mcpx", Tool: "read_result", BytesIn: 11}},
		{"lost", nil, Call{Server: "a", Tool: "crash"}, Event{Outcome: "lost", Server: "a", Tool: "crash"}},
	} {
		ctx := row.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		if row.ctx != nil { // it must be there, so that the end of ctx is what is seen
			b.registry.Settled(t.Context(), "a")
		}
		row.call.Client, row.want.Client = client("me"), "me"
		before := len(b.events)
		result, err := b.Call(ctx, row.call)
		if len(b.events) != before+1 {
			t.Fatalf("%s: %d events, want 1", row.name, len(b.events)-before)
		}
		got := b.last()
		if got.Took <= 0 || got.Took > 20*time.Second {
			t.Errorf("%s: took %v", row.name, got.Took)
		}
		if string(got.Arguments) != string(row.call.Arguments) {
			t.Errorf("%s: arguments %s", row.name, got.Arguments)
		}
		got.Took, got.Arguments = 0, nil
		if row.want.BytesOut < 0 {
			row.want.BytesOut = len(result)
		}
		row.want.Profile = "default"
		if !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: event %+v, want %+v (%v)", row.name, got, row.want, err)
		}
		if (err == nil) != (row.want.Outcome == "ok") {
			t.Errorf("%s: error %v", row.name, err)
		}
	}
}

// TestAPanicIsOneEvent: a call that panics is reported like any other.
func TestAPanicIsOneEvent(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a"))
	b.builtin.tools["servers"] = BuiltinTool{Call: func(context.Context, *Executor, Call, []byte) (string, error) { panic("on purpose") }}
	_, err := b.Call(t.Context(), Call{Server: "mcpx", Tool: "servers"})
	if err == nil || len(b.events) != 1 || b.last().Outcome != "failed" || b.last().Tool != "servers" {
		t.Errorf("%v, events %+v", err, b.events)
	}
}

// TestAnObserverThatPanics: the request still gets its result, and the other observers get
// the event.
func TestAnObserverThatPanics(t *testing.T) {
	for _, row := range []struct {
		name string
		send func(b *bench) ([]byte, error)
		want string
	}{
		{"a call", func(b *bench) ([]byte, error) {
			return b.Call(t.Context(), Call{Server: "a", Tool: "echo", Arguments: []byte(`{"text":"hi"}`)})
		}, "hi"},
		{"another request", func(b *bench) ([]byte, error) {
			return b.Relay(t.Context(), Relay{Method: "prompts/get", Params: []byte(`{"name":"a__plain"}`)})
		}, "messages"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := start(t, nil, newUpstream(t, "a", "-full"))
			b.observers = Observers{func(Event) { panic("on purpose") }, b.observers[0], func(Event) { panic("on purpose") }}
			if result, err := row.send(b); err != nil || !strings.Contains(string(result), row.want) {
				t.Errorf("%s, %v", result, err)
			}
			if len(b.events) != 1 || b.last().Outcome != "ok" {
				t.Errorf("events %+v, want one", b.events)
			}
			if n := b.log.count("panic in an observer"); n != 2 {
				t.Errorf("%d panics are logged, want 2", n)
			}
		})
	}
}

// A caller that cancels while a server starts gets an error about that, and not about a server
// that is unavailable for no reason.
func TestCancelDuringAStart(t *testing.T) {
	b := start(t, nil, newUpstream(t, "a", "-silent", "initialize"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Call(ctx, Call{Server: "a", Tool: "echo"})
	if got := b.last().Outcome; got != "cancelled" {
		t.Errorf("the outcome is %q (%v), want canceled", got, err)
	}
	if _, err := b.Inspect(ctx, nil, "a", ""); err == nil || strings.HasSuffix(err.Error(), ": ") {
		t.Errorf("inspect: %v, want a reason", err)
	}
}

func TestLongResultsAreCutAndReadOn(t *testing.T) {
	b := start(t, map[string]any{"result_tokens": 500}, newUpstream(t, "a"))
	text := b.exec(t, `{"server_name":"a","tool_name":"large","arguments":{"bytes":20000}}`)
	if !strings.HasPrefix(text, "a line of a large result, number 0\n") || !strings.Contains(text, `exec("mcpx","read_result",{"id":"r1"`) {
		t.Errorf("the cut result is %s", text)
	}
	read := `{"server_name":"mcpx","tool_name":"read_result","arguments":{"id":"r1","offset":19980}}`
	if got, want := b.exec(t, read), "ne of a large result\n[bytes 19980-20000 of 20000; end]"; !strings.HasSuffix(got, "of 20000; end]") {
		t.Errorf("read %q, want the like of %q", got, want)
	}
	other := ParseExec([]byte(read))
	other.Client = client("another")
	if _, err := b.Call(t.Context(), other); err == nil {
		t.Error("a client read the result of another")
	}
	b.Forget("tester")
	if got, want := b.exec(t, read), `error: no result "r1": none is kept any more; call the tool again`; got != want {
		t.Errorf("after Forget: %q, want %q", got, want)
	}
}
