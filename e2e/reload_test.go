//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"mcpx/internal/mcptest"
)

// saveConfig replaces the config of a run, the way an editor does.
func (p *process) saveConfig(config any) {
	p.t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		p.t.Fatal(err)
	}
	p.saveText(string(text))
}

// saveText is saveConfig for any text.
func (p *process) saveText(text string) {
	p.t.Helper()
	file := p.cmd.Args[1]
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		p.t.Fatal(err)
	}
}

// hangUp sends SIGHUP.
func (p *process) hangUp() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		p.t.Fatal(err)
	}
}

// reload replaces the config and applies it with SIGHUP.
func (p *process) reload(config any) {
	p.t.Helper()
	n := p.stderrCount("config reloaded")
	p.saveConfig(config)
	p.hangUp()
	p.waitStderrCount("config reloaded", n+1)
}

// entry returns the entry of an upstream with some more keys.
func entry(upstream map[string]any, more map[string]any) map[string]any {
	e := maps.Clone(upstream)
	maps.Copy(e, more)
	return e
}

// TestReload: SIGHUP applies the config. Unchanged upstreams keep their process, also one that
// has created the file in its env.
func TestReload(t *testing.T) {
	t.Parallel()
	a, b, c := mcptest.Upstream(t), mcptest.Upstream(t), mcptest.Upstream(t)
	database := filepath.Join(t.TempDir(), "data.db")
	a["env"].(map[string]string)["DATABASE"] = database
	p := serve(t, map[string]any{"a": a, "b": b})
	p.initialize()
	tools := p.result("tools/list", "{}")
	pid := func(server string) string { return p.exec(server, "pid", "{}") }
	a1, b1 := pid("a"), pid("b")
	if err := os.WriteFile(database, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	p.reload(map[string]any{"mcpServers": map[string]any{
		"a": entry(a, map[string]any{"description": "new words", "timeout": "5s", "tools": map[string]any{"deny": []string{"echo"}}}),
		"b": entry(b, map[string]any{"args": append(b["args"].([]string), "-tools", "1")}),
		"c": c,
	}})
	eventually(t, "the changed server has a new process", func() (string, bool) {
		b2 := pid("b")
		return b2, b2 != b1
	})
	if got := pid("a"); got != a1 {
		t.Errorf("an unchanged server has another process: %s, not %s", got, a1)
	}
	if got := p.execError("a", "echo", `{"text":"hi"}`); !strings.Contains(got, `no tool "echo"`) {
		t.Errorf("a tool that is denied now: %s", got)
	}
	if got := p.result("tools/list", "{}"); got != tools {
		t.Errorf("tools/list has changed: %s", got)
	}
	if got := p.result("tools/call", inspectParams("a", "")); !strings.Contains(got, `"text":"new server: c"`) {
		t.Errorf("inspect does not mention the new server: %s", clip(got))
	}
	if got := p.inspect("a", ""); strings.Contains(got, "new server") {
		t.Errorf("inspect mentions the new server twice: %s", got)
	}
	if got := p.exec("c", "echo", `{"text":"hi"}`); got != "hi" {
		t.Errorf("the new server: %s", got)
	}
	if got := p.exec("mcpx", "servers", "{}"); !strings.Contains(got, "new words") {
		t.Errorf("servers: %s", got)
	}

	p.reload(map[string]any{"mcpServers": map[string]any{"a": a, "c": c}, "limits": map[string]any{"sessions": 5}})
	if got := p.execError("b", "echo", `{"text":"hi"}`); !strings.Contains(got, `unknown server "b"`) {
		t.Errorf("a server that was removed: %s", got)
	}
	p.waitStderr("restart mcpx to apply the changes in these sections of the config sections=limits")
	if got := pid("a"); got != a1 {
		t.Errorf("an unchanged server has another process: %s, not %s", got, a1)
	}
}

// TestReloadOfBadConfig: a file with an error changes nothing, and the error is shown.
func TestReloadOfBadConfig(t *testing.T) {
	t.Parallel()
	config := one(t)
	p := start(t, config, options{})
	p.initialize()
	pid := p.exec("a", "pid", "{}")
	p.saveText(`{"mcpServers": {"b": {"command": 5}}}`)
	p.hangUp()
	p.waitStderr("the config file has changed, but is not in use")
	if got := p.exec("mcpx", "servers", "{}"); !strings.HasPrefix(got, "the config file has changed, but is not in use: ") || !strings.Contains(got, "mcpServers.b.command") {
		t.Errorf("servers: %s", got)
	}
	if got := p.exec("a", "pid", "{}"); got != pid {
		t.Errorf("the server has another process: %s, not %s", got, pid)
	}
	if err := os.Remove(p.cmd.Args[1]); err != nil {
		t.Fatal(err)
	}
	p.hangUp()
	p.waitStderr("mcpx.json does not exist")
	if got, _, _ := strings.Cut(p.exec("mcpx", "servers", "{}"), "\n"); !strings.HasSuffix(got, "mcpx.json does not exist") {
		t.Errorf("servers: %s", got)
	}
	p.reload(config)
	if got := p.exec("mcpx", "servers", "{}"); strings.Contains(got, "not in use") {
		t.Errorf("servers: %s", got)
	}
}

// TestReloadUnderLoad: no call is lost or made twice while upstreams are replaced.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	const calls, reloads, servers, workers = 1000, 50, 4, 8
	record := filepath.Join(t.TempDir(), "record")
	upstreams := map[string]any{}
	for i := range servers {
		upstreams[fmt.Sprintf("s%d", i)] = mcptest.Upstream(t, "-record", record)
	}
	p := serve(t, upstreams)
	p.initialize()
	p.waitStderrCount("upstream ready", servers)
	kept := p.exec("s0", "pid", "{}")
	p.waitStderrCount("upstream ready", servers) // a reload of one that starts would have no old session
	var made atomic.Int64
	var reloaded atomic.Bool
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for i := made.Add(1); i <= calls || !reloaded.Load(); i = made.Add(1) {
				w := mcptest.Work{Nonce: fmt.Sprintf("n%d.", i), MS: int(i % 20), How: "text"}
				arguments, _ := json.Marshal(w)
				if got := p.exec(fmt.Sprintf("s%d", i%servers), "work", string(arguments)); got != w.Text() {
					t.Errorf("call %d: %s", i, clip(got))
				}
			}
			made.Add(-1)
		})
	}
	for n := range reloads {
		name := fmt.Sprintf("s%d", 1+n%(servers-1))
		env := maps.Clone(upstreams[name].(map[string]any)["env"].(map[string]string))
		env["RELOAD"] = fmt.Sprint(n)
		upstreams[name] = entry(upstreams[name].(map[string]any), map[string]any{"env": env})
		p.reload(map[string]any{"mcpServers": upstreams})
		p.waitStderrCount("upstream ready", servers+n+1)
	}
	reloaded.Store(true)
	running.Wait()
	if got := p.exec("s0", "pid", "{}"); got != kept {
		t.Errorf("an unchanged server has another process: %s, not %s", got, kept)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var e mcptest.Event
		if json.Unmarshal([]byte(line), &e) == nil && e.Kind == mcptest.Got {
			got[e.Subject]++
		}
	}
	if len(got) != int(made.Load()) || len(got) < calls {
		t.Errorf("the servers got %d calls, want %d", len(got), made.Load())
	}
	t.Logf("%d calls during %d reloads", len(got), reloads)
	for nonce, times := range got {
		if times != 1 {
			t.Errorf("the call %s was made %d times", nonce, times)
		}
	}
}

// TestReloadProfiles: profiles come and go. A client session goes on if its profile stays, and
// new sessions get the new list of servers.
func TestReloadProfiles(t *testing.T) {
	t.Parallel()
	a, b := mcptest.Upstream(t), mcptest.Upstream(t)
	profiles := func(names map[string]any) map[string]any {
		all := map[string]any{}
		for name, servers := range names {
			all[name] = map[string]any{"mcpServers": servers}
		}
		return map[string]any{"schemas": all}
	}
	s := serveHTTP(t, profiles(map[string]any{"one": map[string]any{"a": a}, "two": map[string]any{"a": a}}), options{})
	one, two := s.client("/mcp/one"), s.client("/mcp/two")
	tools := one.result("tools/list", "{}")
	streams := []*exchange{
		two.listen(),
		s.caller("").openSSE("/sse/two"),
		s.caller("/mcp/two").sendRequest("subscriptions/listen", params2026(`{"notifications":{"promptsListChanged":true}}`, "{}")),
	}
	for _, stream := range streams {
		stream.waitBegun()
	}
	two.exec("a", "echo", `{"text":"hi"}`)

	s.reload(profiles(map[string]any{"one": map[string]any{"a": a, "b": b}, "three": map[string]any{"b": b}}))
	if got := one.exec("b", "echo", `{"text":"hi"}`); got != "hi" {
		t.Errorf("a new server in an open session: %s", got)
	}
	if got := one.result("tools/list", "{}"); got != tools {
		t.Errorf("tools/list of an open session has changed: %s", got)
	}
	if got := s.client("/mcp/one").result("tools/list", "{}"); !strings.Contains(got, "Servers: a, b, mcpx") {
		t.Errorf("tools/list of a new session: %s", clip(got))
	}
	if got := s.client("/mcp/three").exec("b", "echo", `{"text":"hi"}`); got != "hi" {
		t.Errorf("a new profile: %s", got)
	}
	two.try(http.MethodPost, "/mcp/two", `{"jsonrpc":"2.0","id":1,"method":"ping"}`).want(t, "a profile that was removed", http.StatusNotFound, `there is no profile \"two\"; profiles: one, three`)
	for _, stream := range streams {
		stream.waitEnd()
	}
	s.caller("").try(http.MethodGet, "/metrics", "").want(t, "metrics", http.StatusOK, `mcpx_upstream_state{schema="three",server="b",state="ready"} 1`)
}

// TestReloadRoute: the console may reload if the config allows it, and with a token.
func TestReloadRoute(t *testing.T) {
	t.Parallel()
	post := func(s *site, token string) *exchange {
		c := s.caller("")
		c.token = token
		return c.try(http.MethodPost, "/reload", "")
	}
	shown := serveHTTP(t, one(t), options{})
	post(shown, "").want(t, "without console: edit", http.StatusForbidden, "console")
	config := with(one(t), "server", map[string]any{"token": "sesame-sesame", "console": "edit"})
	s := serveHTTP(t, config, options{})
	post(s, "").want(t, "without a token", http.StatusUnauthorized, "")
	post(s, "sesame-sesame").want(t, "with a token", http.StatusNoContent, "")
	s.waitStderr("config reloaded")
	s.saveText("{")
	post(s, "sesame-sesame").want(t, "a bad file", http.StatusUnprocessableEntity, "mcpx.json")
	status := s.caller("")
	status.token = "sesame-sesame"
	status.try(http.MethodGet, "/status", "").want(t, "the status", http.StatusOK, `"config":{"reload":true,"problem":"`)
}

// TestWatch: with "watch" a saved file counts at once, also behind a link that is swapped.
func TestWatch(t *testing.T) {
	t.Parallel()
	a, b := mcptest.Upstream(t), mcptest.Upstream(t)
	config := func(upstreams map[string]any) map[string]any {
		return map[string]any{"watch": true, "mcpServers": upstreams}
	}
	p := start(t, config(map[string]any{"a": a}), options{})
	p.initialize()
	pid := p.exec("a", "pid", "{}")
	p.saveConfig(config(map[string]any{"a": a, "b": b}))
	p.waitStderrCount("config reloaded", 1)
	p.exec("b", "echo", `{"text":"hi"}`)

	file := p.cmd.Args[1]
	data := filepath.Join(filepath.Dir(file), "..data")
	for i, upstreams := range []map[string]any{{"a": a}, {"a": a, "b": b}} {
		folder := filepath.Join(filepath.Dir(file), fmt.Sprintf("..%d", i))
		text, _ := json.Marshal(config(upstreams))
		for _, err := range []error{
			os.Mkdir(folder, 0o700),
			os.WriteFile(filepath.Join(folder, "mcpx.json"), text, 0o600),
			os.Symlink(folder, data+".new"),
			os.Rename(data+".new", data),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 {
			for _, err := range []error{os.Symlink(filepath.Join("..data", "mcpx.json"), file+".new"), os.Rename(file+".new", file)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		p.waitStderrCount("config reloaded", i+2)
	}
	if got := p.exec("a", "pid", "{}"); got != pid {
		t.Errorf("an unchanged server has another process: %s, not %s", got, pid)
	}
	p.saveConfig(map[string]any{"mcpServers": map[string]any{"a": a}}) // not watched any more
	p.waitStderrCount("config reloaded", 4)
	p.saveText("{")
	p.hangUp()
	p.waitStderrCount("not in use", 1)
}

// TestHangupReopensLog: after SIGHUP the log goes to a new file.
func TestHangupReopensLog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log")
	p := start(t, one(t), options{flags: []string{"--log-file", file}})
	p.initialize()
	p.exec("a", "echo", `{"text":"hi"}`)
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	p.hangUp()
	eventually(t, "the new file is written", func() (string, bool) {
		text, _ := os.ReadFile(file)
		return string(text), strings.Contains(string(text), "config reloaded")
	})
}
