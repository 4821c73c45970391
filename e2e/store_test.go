package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcpx/internal/parts/replicas/storetest"
	"mcpx/internal/parts/signin/signintest"
)

// storePassword is the password of the store in these tests. It must appear nowhere.
const storePassword = "store-pass-word"

// withStore returns a run of mcpx-sse with a session key and a store.
func withStore(t *testing.T, server *storetest.Server) *site {
	t.Helper()
	config := with(one(t), "server", map[string]any{
		"session_key": sessionKey(1),
		"store":       "redis://:${STORE_PASSWORD}@" + server.Host() + "/?prefix=e2e",
	})
	return serveHTTP(t, config, options{flags: []string{"--log-level", "debug"}, env: []string{"STORE_PASSWORD=" + storePassword}})
}

var handleForm = regexp.MustCompile(`kept as (r[0-9]+-[a-z2-7]{4})( \(only on this replica\))?;`)

// keep makes calls whose results are kept, until one is kept in the wanted place, and returns
// its handle: on a busy machine a store that works may be too slow for mcpx.
func (c *caller) keep(name, place string) (id string) {
	c.site.t.Helper()
	items := strings.Repeat(`{"id":12345678901234567890,"name":"filler"},`, 100)
	result := fmt.Sprintf(`{"content":[],"structuredContent":{"items":[%s{"id":1,"name":%q}]}}`, items, name)
	answer := ""
	for range 20 {
		answer = c.result("tools/call", execParams("a", "raw", `{"result":`+quote(result)+`}`))
		if found := handleForm.FindStringSubmatch(answer); found != nil && found[2] == place {
			return found[1]
		}
		<-time.After(100 * time.Millisecond)
	}
	c.site.t.Fatalf("no handle with the place %q in %s", place, clip(answer))
	return ""
}

// The places of handles.
const (
	onReplicas = ""
	onlyHere   = " (only on this replica)"
)

// says calls a tool and returns the text of its result, also that of an error. It calls again
// while the store is too slow.
func (c *caller) says(server, tool, arguments string) (text string) {
	c.site.t.Helper()
	for range 20 {
		text = memberOf([]byte(c.result("tools/call", execParams(server, tool, arguments))), "content")
		if !strings.Contains(text, "the store cannot be used") {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	return text
}

// uses checks that a client can read a handle and refer to it.
func (c *caller) uses(id, name string) {
	c.site.t.Helper()
	for _, row := range []struct{ server, tool, arguments, want string }{
		{"mcpx", "read_result", `{"id":"ID","path":"/items/100/name"}`, `"text":"\"` + name + `\"\n[`},
		{"mcpx", "read_result", `{"id":"ID","limit":20}`, `{\"items\":[{\"id\":1234`},
		{"a", "echo", `{"text":{"$r":"ID/items/100/name"}}`, `"text":"` + name + `"`},
	} {
		if got := c.says(row.server, row.tool, strings.ReplaceAll(row.arguments, "ID", id)); !strings.Contains(got, row.want) {
			c.site.t.Errorf("%s of %s: %s, want %s", row.arguments, id, clip(got), row.want)
		}
	}
}

// waitStore waits until /health shows a state of the store. It is always answered with 200.
func (s *site) waitStore(state string) {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		x := s.caller("").try("GET", "/health", "")
		if x.status != 200 || !strings.HasPrefix(x.body, `{"status":"ok","store":{"state":"`) || strings.Contains(x.body, "127.0.0.1") {
			s.t.Fatalf("/health: %d %s", x.status, x.body)
		}
		if strings.Contains(x.body, `"state":"`+state+`","since":"2`) {
			return
		}
	}
	s.t.Fatalf("/health never shows the state %q of the store", state)
}

// TestSharedStore: two processes share what they keep for a client. While the store is gone,
// calls work and say what that costs; afterwards everything is as before.
func TestSharedStore(t *testing.T) {
	t.Parallel()
	server := storetest.Start(t, "--requirepass", storePassword)
	first, second := withStore(t, server), withStore(t, server)
	first.waitStore("up")
	c := first.client("/mcp")
	there := c.at(second)
	id := c.keep("shared", onReplicas)
	there.uses(id, "shared")
	c.uses(id, "shared")
	c.uses(there.keep("from the other side", onReplicas), "from the other side")
	stranger := second.client("/mcp")
	if got := stranger.says("mcpx", "read_result", fmt.Sprintf(`{"id":%q}`, id)); !strings.Contains(got, "no result") {
		t.Errorf("another client reads %s", clip(got))
	}

	server.Stop()
	local := c.keep("local", onlyHere)
	c.uses(local, "local")
	first.waitStore("down")
	second.waitStore("down")
	m := first.metrics(t, "")
	if _, ok := m["mcpx_store_failures_total"]; !ok || m["mcpx_store_up"] != 0 { // 0 failures if the probe was the first to notice
		t.Errorf("metrics: up %v, with failures: %t", m["mcpx_store_up"], ok)
	}
	if got := textOf(t, there.result("tools/call", execParams("mcpx", "read_result", fmt.Sprintf(`{"id":%q}`, local))), true); !strings.Contains(got, "on this replica, and the store cannot be used") {
		t.Errorf("a local handle elsewhere: %s", clip(got))
	}
	for _, at := range []*caller{c, there} {
		if got := at.exec("a", "echo", `{"text":"works"}`); got != "works" {
			t.Errorf("without a store: %s", clip(got))
		}
	}

	server.Start()
	first.waitStore("up")
	second.waitStore("up")
	there.uses(c.keep("again", onReplicas), "again")
	if m := first.metrics(t, ""); m["mcpx_store_up"] != 1 || m["mcpx_store_requests_total"] < 1 {
		t.Errorf("metrics: up %v, requests %v", m["mcpx_store_up"], m["mcpx_store_requests_total"])
	}
	for _, s := range []*site{first, second} {
		shown := s.errors() + s.caller("").try("GET", "/status", "").body + s.client("/mcp").exec("mcpx", "show_config", "{}")
		if strings.Contains(shown, storePassword) || !strings.Contains(shown, `"address":"redis://`+server.Host()) {
			t.Errorf("what mcpx shows of the store: %s", clip(shown))
		}
	}
}

// endedOnBoth ends a client session at the first replica, and returns its client at both. On a
// busy machine the store may be too slow for mcpx, so it tries several sessions.
func endedOnBoth(first, second *site) (c, there *caller) {
	first.t.Helper()
	for range 20 {
		c = first.client("/mcp")
		there = c.at(second)
		there.try("POST", "/mcp", pingLine).want(first.t, "the other replica", 200, "")
		c.try("DELETE", "/mcp", "").want(first.t, "DELETE", 204, "")
		for range 100 {
			if there.try("POST", "/mcp", pingLine).status == 404 {
				return c, there
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	first.t.Fatal("the session never ends at the other replica")
	return nil, nil
}

// TestEndedSessionStaysEnded: a client session that was ended stays ended while the store is down,
// and after the store comes back without its values.
func TestEndedSessionStaysEnded(t *testing.T) {
	t.Parallel()
	server := storetest.Start(t, "--requirepass", storePassword)
	first, second := withStore(t, server), withStore(t, server)
	first.waitStore("up")
	second.waitStore("up")
	c, there := endedOnBoth(first, second)
	check := func(when string) {
		t.Helper()
		c.try("POST", "/mcp", pingLine).want(t, when+", the replica that ended it", 404, "initialize")
		there.try("POST", "/mcp", pingLine).want(t, when+", the other replica", 404, "initialize")
	}
	check("after DELETE")
	server.Stop()
	first.waitStore("down")
	second.waitStore("down")
	check("without the store")
	server.Start()
	first.waitStore("up")
	second.waitStore("up")
	check("with an empty store")
}

// TestStoreNeverThere: mcpx starts without its store, and says so once.
func TestStoreNeverThere(t *testing.T) {
	t.Parallel()
	server := storetest.Start(t, "--requirepass", storePassword)
	server.Stop()
	s := withStore(t, server)
	s.client("/mcp").keep("here", onlyHere)
	s.waitStore("down")
	if n := strings.Count(s.errors(), "the store cannot be used; mcpx goes on without it"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, clip(s.errors()))
	}
}

// TestSharedSignIn: a sign-in on one machine is valid on another with the same store.
func TestSharedSignIn(t *testing.T) {
	t.Parallel()
	server := storetest.Start(t)
	s := signintest.New(t)
	config := map[string]any{
		"server":     map[string]any{"session_key": sessionKey(1), "store": server.Address()},
		"mcpServers": map[string]any{"locked": map[string]any{"url": s.URL}},
	}
	one, two := newPerson(t, s.URL), newPerson(t, s.URL)
	one.config, two.config = writeConfig(t, config), writeConfig(t, config)
	one.want(0, "signed in to locked", "auth", "login", one.config, "locked")
	two.want(0, "server.store (encrypted)", "auth", "status", two.config)
	two.want(0, "hello", "exec", two.config, "locked", "hello")
	s.Expire()
	two.want(0, "hello", "exec", two.config, "locked", "hello")
	one.want(0, "hello", "exec", one.config, "locked", "hello")
	if got := s.Grants("refresh_token"); got != 1 || s.Reused() != 0 {
		t.Errorf("%d refreshes, %d refresh tokens used twice", got, s.Reused())
	}
	if keys := server.Eternal(); keys != "" {
		t.Errorf("keys that never expire: %s", keys)
	}
	two.want(0, "signed out of locked", "auth", "logout", two.config, "locked")
	one.want(1, "needs sign-in", "exec", one.config, "locked", "hello")
	server.Stop()
	one.want(1, "the store cannot be used", "auth", "login", one.config, "locked")
	out, _ := one.run("", "auth", "status", one.config)
	if !strings.Contains(out, "unknown") {
		t.Errorf("without the store: %s", out)
	}
}
