package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/child"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
)

func TestMain(m *testing.M) {
	child.WatchIfAsked()
	mcptest.Main()
	os.Exit(m.Run())
}

// run starts a registry of the given upstreams and stops it after the test.
func run(t *testing.T, upstreams map[string]any) (*Registry, *log) {
	t.Helper()
	return runWith(t, Options{}, upstreams)
}

// runWith is run with options of the test's own.
func runWith(t *testing.T, o Options, upstreams map[string]any) (*Registry, *log) {
	t.Helper()
	mcptest.NothingLeft(t)
	text, err := json.Marshal(map[string]any{"mcpServers": upstreams})
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(filepath.Join(t.TempDir(), "config.json"), text, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	l := newLog()
	w := child.NewWatcher(zerolog.New(l))
	o.Log, o.Version, o.MessageBytes, o.ConnectsAtOnce, o.Watcher = zerolog.New(l), "1.2.3", 1<<20, 2, w
	r := New(&c.Profiles[0], o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.Close()
		for _, u := range r.Catalog().Upstreams {
			if u.State != Stopped {
				t.Errorf("%s is %s after the end", u.Name, u.State)
			}
		}
	})
	return r, l
}

// log collects the log and lets a test wait for a line.
type log struct {
	mu    sync.Mutex
	text  strings.Builder
	wrote chan struct{}
}

func newLog() *log { return &log{wrote: make(chan struct{})} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	close(l.wrote)
	l.wrote = make(chan struct{})
	return len(p), nil
}

func (l *log) wait(t *testing.T, part string) {
	t.Helper()
	l.waitFor(t, part, 1)
}

// waitFor waits until the log has a part that many times.
func (l *log) waitFor(t *testing.T, part string, times int) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		l.mu.Lock()
		text, wrote := l.text.String(), l.wrote
		l.mu.Unlock()
		if strings.Count(text, part) >= times {
			return
		}
		select {
		case <-wrote:
		case <-limit:
			t.Fatalf("the log never had %q %d times:\n%s", part, times, text)
		}
	}
}

func (l *log) count(part string) int { return strings.Count(l.String(), part) }

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// callTool calls a tool and returns the text it answers.
func callTool(ctx context.Context, r *Registry, server, tool, arguments string) (string, error) {
	result, err := r.Call(ctx, server, Request{
		Method: "tools/call",
		Params: fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, arguments),
		Meta:   []byte("{}"),
	})
	if err != nil {
		return "", err
	}
	var answer struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &answer); err != nil || len(answer.Content) != 1 {
		return "", fmt.Errorf("result %s: %w", result, err)
	}
	return answer.Content[0].Text, nil
}

func mustCall(t *testing.T, r *Registry, server, tool, arguments string) string {
	t.Helper()
	text, err := callTool(t.Context(), r, server, tool, arguments)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCallsShareOneSession(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	pid := mustCall(t, r, "a", "pid", "{}")
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			text := fmt.Sprintf("call %d", i)
			got, err := callTool(t.Context(), r, "a", "sleep", fmt.Sprintf(`{"ms":%d,"text":%q}`, i%7, text))
			if err != nil || got != text {
				t.Errorf("got %q, %v, want %q", got, err, text)
			}
		})
	}
	wg.Wait()
	if again := mustCall(t, r, "a", "pid", "{}"); again != pid {
		t.Errorf("the upstream's pid went from %s to %s", pid, again)
	}
}

func TestArgumentsAndResultsStayBytes(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	arguments := `{"big":9007199254740993, "list":[ 1,2 ],"tiny":1e-400,"text":"\u00e9\ud83d\ude00"}`
	if got := mustCall(t, r, "a", "arguments", arguments); got != arguments {
		t.Errorf("the upstream got %s, want %s", got, arguments)
	}
	result := `{"content":[{"type":"hologram","id":9007199254740993}],"structuredContent":{"a": 1.0},"isError":false,"more":[1]}`
	got, err := r.Call(t.Context(), "a", Request{Method: "tools/call", Params: []byte(`{"name":"raw","arguments":{"result":` + result + `}}`)})
	if err != nil || string(got) != result {
		t.Errorf("got %s, %v, want %s", got, err, result)
	}
}

func TestMetaCarriesAnOwnProgressToken(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	result, err := r.Call(t.Context(), "a", Request{
		Method: "tools/call",
		Params: []byte(`{"name":"params","arguments":{}}`),
		Meta:   []byte(`{"progressToken":"mine","trace":{"id":1}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &answer); err != nil {
		t.Fatal(err)
	}
	meta := rawjson.Get([]byte(answer.Content[0].Text), "_meta")
	if token := rawjson.Get(meta, "progressToken"); len(token) == 0 || token[0] == '"' {
		t.Errorf("the progress token is %s, want a number of our own", token)
	}
	if trace := string(rawjson.Get(meta, "trace")); trace != `{"id":1}` {
		t.Errorf("trace is %s", trace)
	}
}

func TestProgressArrivesInOrderBeforeTheResult(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			var got []string
			_, err := r.Call(t.Context(), "a", Request{
				Method:   "tools/call",
				Params:   []byte(`{"name":"progress","arguments":{"steps":100}}`),
				Meta:     []byte("{}"),
				Progress: func(params []byte) { got = append(got, string(rawjson.Get(params, "progress"))) },
			})
			if err != nil {
				t.Error(err)
			}
			for i, line := range got {
				if want := strconv.Itoa(i + 1); line != want {
					t.Errorf("notification %d is %q, want %q", i, line, want)
				}
			}
			if len(got) != 100 {
				t.Errorf("%d notifications, want 100", len(got))
			}
		})
	}
	wg.Wait()
}

func TestUpstreamsOwnErrorIsKept(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	_, err := callTool(t.Context(), r, "a", "fail", "{}")
	var e *jsonrpc.Error
	if !errors.As(err, &e) || e.Code != -32042 || e.Message != "it did not work" || string(e.Data) != `{"detail":9007199254740993}` {
		t.Errorf("error %+v", err)
	}
}

func TestOneBadUpstreamCostsOnlyItself(t *testing.T) {
	slow := mcptest.Upstream(t, "-silent", "initialize", "-stderr", "still thinking")
	slow["startup_timeout"] = 5 // it has said what it thinks by then
	missing := mcptest.Upstream(t)
	missing["args"] = []string{"${MCPX_NO_SUCH_VARIABLE}"}
	nowhere := mcptest.Upstream(t)
	nowhere["cwd"] = "no/such/folder"
	r, _ := run(t, map[string]any{
		"good":    mcptest.Upstream(t),
		"gone":    map[string]any{"command": "mcpx-no-such-program"},
		"path":    map[string]any{"command": "./no-such-program"},
		"notexec": map[string]any{"command": "/dev/null"},
		"folder":  map[string]any{"command": "../registry"},
		"words":   map[string]any{"command": "npx -y foo"},
		"spaces":  map[string]any{"command": "/no such folder/foo"},
		"own":     map[string]any{"command": "npx -y foo", "env": map[string]string{"PATH": t.TempDir()}},
		"exits":   mcptest.Upstream(t, "-exit", "3", "-stderr", "no API key\nset API_KEY"),
		"refuses": mcptest.Upstream(t, "-refuse", "initialize"),
		"lists":   mcptest.Upstream(t, "-refuse", "tools/list"),
		"slow":    slow,
		"env":     missing,
		"nowhere": nowhere,
	})
	if got := mustCall(t, r, "good", "echo", `{"text":"hi"}`); got != "hi" {
		t.Errorf("good answered %q", got)
	}
	for server, want := range map[string]struct {
		state  State
		reason string
		stderr []string
	}{
		"gone":    {Waiting, `command "mcpx-no-such-program" was not found in PATH; install it, or give its full path`, nil},
		"path":    {Waiting, `command "./no-such-program" does not exist; check its path`, nil},
		"notexec": {Waiting, `command "/dev/null" may not be executed; check its permissions`, nil},
		"folder":  {Waiting, `command "../registry" is a folder, not a program; give the path of the program in it`, nil},
		"words":   {Waiting, `command "npx -y foo" does not exist: it is the program alone; move the words after "npx" to "args"`, nil},
		"spaces":  {Waiting, `command "/no such folder/foo" does not exist; check its path`, nil},
		"own":     {Waiting, `command "npx -y foo" does not exist: it is the program alone; move the words after "npx" to "args"`, nil},
		"exits":   {Waiting, "exited with status 3", []string{"no API key", "set API_KEY"}},
		"refuses": {Waiting, "initialize: refused on purpose (-32050)", nil},
		"lists":   {Waiting, "tools/list: refused on purpose (-32050)", nil},
		"slow":    {Waiting, `not ready within 5s (its "startup_timeout")`, []string{"still thinking"}},
		"env":     {Failed, "", nil},
		"nowhere": {Waiting, "", nil},
	} {
		u := r.Settled(t.Context(), server)
		if u.State != want.state || want.reason != "" && u.Reason != want.reason || strings.Join(u.Stderr, "|") != strings.Join(want.stderr, "|") {
			t.Errorf("%s: %s, %q, %q; want %+v", server, u.State, u.Reason, u.Stderr, want)
		}
	}
	if reason := r.Settled(t.Context(), "env").Reason; !strings.Contains(reason, "MCPX_NO_SUCH_VARIABLE") {
		t.Errorf("the missing variable is not named: %q", reason)
	}
	if reason := r.Settled(t.Context(), "nowhere").Reason; !strings.Contains(reason, "cwd") {
		t.Errorf("the missing folder is not named: %q", reason)
	}
	_, err := callTool(t.Context(), r, "exits", "echo", "{}")
	var unavailable *Unavailable
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), `server "exits" is unavailable: exited with status 3; next try in `) ||
		!strings.HasSuffix(err.Error(), "last lines of its stderr:\n  no API key\n  set API_KEY") {
		t.Errorf("error %v", err)
	}
	if _, err := callTool(t.Context(), r, "nobody", "echo", "{}"); !errors.As(err, &unavailable) {
		t.Errorf("error %v", err)
	}
}

func TestDeathDuringACallAndAfter(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	pid := mustCall(t, r, "a", "pid", "{}")
	_, err := callTool(t.Context(), r, "a", "crash", `{"status":7,"stderr":"out of memory"}`)
	var lost *Lost
	if !errors.As(err, &lost) {
		t.Fatalf("error %v, want a *Lost", err)
	}
	want := `server "a" stopped during the call: exited with status 7; whether the call took effect is unknown, and mcpx does not repeat it` +
		"\nlast lines of its stderr:\n  out of memory"
	if err.Error() != want {
		t.Errorf("error\n%v\nwant\n%s", err, want)
	}
	if again := mustCall(t, r, "a", "pid", "{}"); again == pid {
		t.Error("the next call found the dead process")
	}
	// The second one makes it wait, for most of a second at least.
	for {
		begin := time.Now()
		_, _ = callTool(t.Context(), r, "a", "crash", `{"status":0}`)
		_, err = callTool(t.Context(), r, "a", "pid", "{}")
		var unavailable *Unavailable
		if errors.As(err, &unavailable) {
			break
		}
		if time.Since(begin) < 700*time.Millisecond {
			t.Fatalf("after a second death: %v, want it to wait", err)
		}
	}
}

func TestCancelReachesTheUpstream(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-report")})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	ended := make(chan error, 1)
	go func() {
		_, err := callTool(ctx, r, "a", "sleep", `{"ms":3600000}`)
		ended <- err
	}()
	l.wait(t, "got tools/call")
	cancel(enough)
	if err := <-ended; !errors.Is(err, enough) {
		t.Errorf("error %v, want the cause", err)
	}
	l.wait(t, "cancelled ")
}

func TestATimeoutReachesTheUpstream(t *testing.T) {
	quick := mcptest.Upstream(t)
	quick["timeout"] = 0.3
	r, l := run(t, map[string]any{"a": quick})
	_, err := callTool(t.Context(), r, "a", "sleep", `{"ms":3600000}`)
	if want := `server "a": timed out: no answer and no progress within 300ms (its "timeout"); the call was cancelled`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	l.wait(t, "cancelled ")
}

func TestEveryToolIsCached(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tools.json")
	odd := `[
		{"name":"odd","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","oneOf":[{}],"$defs":{"a":{}}},"annotations":{"x":1},"icons":[{"sizes":"any"}],"big":9007199254740993},
		{"title":"no name"}, 5, null, "text",
		{"name":"odd","description":"a second one"},
		{"name":"bool","inputSchema":true},
		{"name":"none"},
		{"name":"wrong","inputSchema":["not","a","schema"],"description":{"not":"text"}},
		{"name":"hidden_tool","inputSchema":{"type":["object","null"]}}
	]`
	if err := os.WriteFile(file, []byte(odd), 0o600); err != nil {
		t.Fatal(err)
	}
	a := mcptest.Upstream(t, "-tools", "50", "-page-size", "7", "-tools-file", file, "-instructions", "be kind")
	a["tools"] = map[string]any{"deny": []string{"hidden*", "pid"}}
	r, _ := run(t, map[string]any{"a": a, "bare": mcptest.Upstream(t, "-no-tools")})
	u := r.Settled(t.Context(), "a")
	if u.State != Ready || u.Instructions != "be kind" || u.StartupTime <= 0 {
		t.Fatalf("%s %q %q", u.State, u.Reason, u.Instructions)
	}
	for _, name := range []string{"echo", "extra_0", "extra_49", "odd", "bool", "none", "wrong"} {
		if u.Tool(name) == nil {
			t.Errorf("no tool %s", name)
		}
	}
	for _, name := range []string{"hidden_tool", "pid", ""} {
		if u.Tool(name) != nil {
			t.Errorf("there is a tool %q", name)
		}
	}
	var want []json.RawMessage
	if err := json.Unmarshal([]byte(odd), &want); err != nil {
		t.Fatal(err)
	}
	if got := string(u.Tool("odd").Raw); got != string(want[0]) {
		t.Errorf("the definition is\n%s\nwant\n%s", got, want[0])
	}
	if got := u.Tool("echo").Signature(); !strings.HasPrefix(got, "text: string, times?: integer") {
		t.Errorf("signature %q", got)
	}
	if got := u.Tool("echo").RequiredParameters(); got != "text, …" {
		t.Errorf("required parameters %q", got)
	}
	if bare := r.Settled(t.Context(), "bare"); bare.State != Ready || len(bare.Tools) != 0 {
		t.Errorf("bare: %s, %d tools", bare.State, len(bare.Tools))
	}
}

func TestListChangedIsCoalesced(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t)})
	before := r.Settled(t.Context(), "a")
	mustCall(t, r, "a", "change", `{"notices":200}`)
	l.wait(t, "list changed")
	after := r.Settled(t.Context(), "a")
	if before.Tool("extra_0") != nil || after.Tool("extra_0") == nil {
		t.Error("the new tool is not there")
	}
	if before.Tool("echo") != after.Tool("echo") {
		t.Error("a tool that did not change was made anew")
	}
	mustCall(t, r, "a", "sleep", `{"ms":1500}`)
	lists, err := strconv.Atoi(mustCall(t, r, "a", "lists", "{}"))
	if err != nil || lists > 3 {
		t.Errorf("200 notices caused %d lists besides the first, want 2 at most", lists-1)
	}
}

func TestStrayOutputIsSkippedWithOneWarning(t *testing.T) {
	r, l := run(t, map[string]any{"a": mcptest.Upstream(t, "-stray", "Listening on \x1b[1mstdio\x1b[0m")})
	for range 3 {
		mustCall(t, r, "a", "echo", `{"text":"x"}`)
	}
	if n := l.count("text that is not a message"); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
}

func TestTooLongAMessageEndsTheSession(t *testing.T) {
	r, _ := run(t, map[string]any{"a": mcptest.Upstream(t)})
	_, err := callTool(t.Context(), r, "a", "large", `{"bytes":2000000}`)
	var lost *Lost
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "sent a message of more than 1048576 bytes (limits.message_bytes)") {
		t.Errorf("error %v", err)
	}
	if got := mustCall(t, r, "a", "echo", `{"text":"again"}`); got != "again" {
		t.Errorf("got %q", got)
	}
}
