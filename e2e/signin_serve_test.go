package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/parts/signin/signintest"
)

// needsOAuth is the config of a server that requires OAuth.
func needsOAuth(url string) map[string]any {
	return map[string]any{"auth": map[string]string{"store": "file"}, "mcpServers": map[string]any{"locked": map[string]any{"url": url}}}
}

// stateFolder returns the variable that names the folder of the tokens.
func stateFolder(t *testing.T) string { return "XDG_STATE_HOME=" + filepath.Join(t.TempDir(), "state") }

// visit opens a page like a browser, and returns what it shows.
func visit(t *testing.T, address string) (status int, text string) {
	t.Helper()
	response, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

// TestServeNeedsSignIn: a server that needs a sign-in says so in the same words everywhere,
// and works as soon as another process has signed in.
func TestServeNeedsSignIn(t *testing.T) {
	t.Parallel()
	s := signintest.New(t)
	state := stateFolder(t)
	p := start(t, needsOAuth(s.URL), options{env: []string{state}})
	p.initialize()
	file := p.cmd.Args[1]
	want := fmt.Sprintf("locked needs sign-in: run mcpx auth login %s locked; then call again", file)
	for what, got := range map[string]string{
		"exec":    p.execError("locked", "hello", `{}`),
		"inspect": p.inspectError("locked", ""),
		"servers": strings.Split(p.exec("mcpx", "servers", `{}`), "\n")[0],
	} {
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	check := exec.Command(binary, "check", file)
	check.Env = append(environment(t), state)
	if out, _ := check.CombinedOutput(); check.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "needs sign-in: run mcpx auth login") {
		t.Errorf("check: exit code %d, %s", check.ProcessState.ExitCode(), out)
	}
	login := exec.Command(binary, "auth", "login", file, "locked")
	login.Env = append(environment(t), state, browserVariable+"=1", "BROWSER="+os.Args[0])
	if out, err := login.CombinedOutput(); err != nil {
		t.Fatalf("auth login: %v\n%s", err, out)
	}
	p.waitStderr("upstream ready") // nothing has called it
	if got := p.exec("locked", "hello", `{}`); got != "hello" {
		t.Errorf("after the sign-in: %s", got)
	}
	s.Revoke()
	if got := p.execError("locked", "hello", `{}`); got != want {
		t.Errorf("after the tokens were revoked: %s, want %s", got, want)
	}
	p.waitStderrCount("state=\"needs sign-in\"", 2)
}

// TestSignInByElicitation: a client that can open a URL is asked to, and the call is made
// once the person has signed in.
func TestSignInByElicitation(t *testing.T) {
	t.Parallel()
	const canOpen = `{"elicitation":{"url":{}}}`
	// answer answers the request to open a page, and visits it if the person agrees.
	answer := func(p *process, n int, action string) {
		m := p.waitReceived("elicitation/create", n)[n-1]
		if message := unquote(memberOf(m.Params, "message")); !strings.HasPrefix(message, "locked needs ") {
			t.Errorf("the message is %s", message)
		}
		if action == "accept" {
			if status, text := visit(t, unquote(memberOf(m.Params, "url"))); status != http.StatusOK {
				t.Errorf("the page: %d %s", status, text)
			}
		}
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":%q}}`, m.ID, action))
	}
	s := signintest.New(t)
	s.CallScope = "write"
	p := start(t, needsOAuth(s.URL), options{env: []string{stateFolder(t)}})
	p.initializeAs("2025-11-25", canOpen)
	p.send("1", "tools/call", execParams("locked", "hello", `{}`))
	answer(p, 1, "decline")
	if got := textOf(t, string(p.answer("1").Result), true); !strings.HasPrefix(got, "locked needs sign-in: run mcpx auth login") {
		t.Errorf("the person declined: %s", got)
	}
	p.send("2", "tools/call", execParams("locked", "hello", `{}`))
	answer(p, 2, "accept")
	if got := textOf(t, string(p.answer("2").Result), true); !strings.HasPrefix(got, "locked needs more access (write): run mcpx auth login") {
		t.Errorf("the token has too little access: %s", got)
	}
	p.send("3", "tools/call", execParams("locked", "hello", `{}`))
	answer(p, 3, "accept")
	if got := textOf(t, string(p.answer("3").Result), false); got != "hello" {
		t.Errorf("after the person has granted more access: %s", got)
	}
	p.waitReceived("notifications/elicitation/complete", 2)
}

// TestTokensThatOthersCouldRead: mcpx repairs the permissions of tokens, says so, and uses them.
func TestTokensThatOthersCouldRead(t *testing.T) {
	t.Parallel()
	s := signintest.New(t)
	person := newPerson(t, s.URL)
	person.want(0, "signed in to locked", "auth", "login", person.config, "locked")
	state := person.state()
	tokens, file := tokenFile(t, state)
	open := func() {
		if err := errors.Join(os.Chmod(tokens, 0o755), os.Chmod(file, 0o644)); err != nil { //nolint:gosec // on purpose
			t.Fatal(err)
		}
	}
	open()
	person.want(0, "warning: other users could read "+tokens, "auth", "status", person.config)
	open()
	p := start(t, needsOAuth(s.URL), options{env: []string{"XDG_STATE_HOME=" + state}})
	p.initialize()
	if got := p.exec("locked", "hello", `{}`); got != "hello" {
		t.Errorf("a call: %s", got)
	}
	p.waitStderrCount("other users could read this file or folder", 2)
	for path, want := range map[string]os.FileMode{tokens: 0o700, file: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// tokenFile returns the folder of the tokens, and the only file of tokens in it.
func tokenFile(t *testing.T, state string) (folder, file string) {
	t.Helper()
	folder = filepath.Join(state, "mcpx", "tokens")
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the folder has %v, %v", files, err)
	}
	return folder, files[0]
}

// TestCommandsRepairTokens: a command that repairs the permissions of tokens prints a warning for
// each file or folder, once, and its stdout is the same as without.
func TestCommandsRepairTokens(t *testing.T) {
	t.Parallel()
	s := signintest.New(t)
	person := newPerson(t, s.URL)
	person.want(0, "signed in to locked", "auth", "login", person.config, "locked")
	state := person.state()
	tokens, file := tokenFile(t, state)
	person.want(0, "hello", "exec", person.config, "locked", "hello") // creates the key of the cache
	for _, args := range [][]string{
		{"exec", person.config, "locked", "hello"},
		{"exec", person.config, "locked", "hello", "--json"},
		{"inspect", person.config, "locked"},
		{"inspect", person.config, "locked", "--json"},
		{"tokens", person.config, "--json"},
		{"pin", person.config, "--diff"},
		{"exec", s.URL, "hello", "--log-level", "debug"},
		{"check", person.config, "--json", "--log-level", "warn"},
	} {
		want, said := person.outputs(args...)
		if strings.Contains(said, "other users could read") {
			t.Errorf("mcpx %v warns without a reason: %s", args, said)
		}
		opened := map[string]os.FileMode{filepath.Join(state, "mcpx"): 0o755, tokens: 0o755, file: 0o644, filepath.Join(state, "mcpx", "catalog-key"): 0o644}
		for path, mode := range opened {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		got, said := person.outputs(args...)
		if args[0] != "check" && got != want { // check prints times
			t.Errorf("mcpx %v prints %q, want %q", args, got, want)
		}
		for path := range opened {
			if warning := "warning: other users could read " + path + "; mcpx has repaired its permissions."; strings.Count(said, warning) != 1 {
				t.Errorf("mcpx %v: stderr has no %q, or more than one: %s", args, warning, said)
			}
		}
		if n := strings.Count(got+said, "other users could read"); n != len(opened) {
			t.Errorf("mcpx %v warns %d times, want %d", args, n, len(opened))
		}
	}
}

// TestSignInElsewhereDuringACall: a call that waits for a person goes on when the person signs
// in with the command line instead.
func TestSignInElsewhereDuringACall(t *testing.T) {
	t.Parallel()
	s := signintest.New(t)
	state := stateFolder(t)
	p := start(t, needsOAuth(s.URL), options{env: []string{state}})
	p.initializeAs("2025-11-25", `{"elicitation":{"url":{}}}`)
	p.send("1", "tools/call", execParams("locked", "hello", `{}`))
	asked := p.waitReceived("elicitation/create", 1)[0]
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, asked.ID)) // and opens no page
	login := exec.Command(binary, "auth", "login", p.cmd.Args[1], "locked")
	login.Env = append(environment(t), state, browserVariable+"=1", "BROWSER="+os.Args[0])
	if out, err := login.CombinedOutput(); err != nil {
		t.Fatalf("auth login: %v\n%s", err, out)
	}
	if got := textOf(t, string(p.answer("1").Result), false); got != "hello" {
		t.Errorf("after the sign-in: %s", got)
	}
}

// TestServeNeedsMoreAccess: after a call that lacked access, mcpx says so everywhere in the same
// words, until another process has signed in with that access.
func TestServeNeedsMoreAccess(t *testing.T) {
	t.Parallel()
	s := signintest.New(t)
	s.CallScope = "write"
	state := stateFolder(t)
	h := serveHTTP(t, needsOAuth(s.URL), options{env: []string{state}})
	c := h.client("/mcp")
	login := func(args ...string) {
		cmd := exec.Command(binary, append([]string{"auth", "login", h.cmd.Args[1], "locked"}, args...)...)
		cmd.Env = append(environment(t), state, browserVariable+"=1", "BROWSER="+os.Args[0])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("auth login: %v\n%s", err, out)
		}
	}
	login()
	want := textOf(t, c.result("tools/call", execParams("locked", "hello", `{}`)), true)
	if !strings.HasPrefix(want, "locked needs more access (write): run mcpx auth login") || !strings.Contains(want, "--scope write") {
		t.Fatalf("exec: %s", want)
	}
	reason := strings.TrimPrefix(want, "locked ")
	if got := strings.Split(c.exec("mcpx", "servers", `{}`), "\n")[0]; got != want {
		t.Errorf("servers: %s, want %s", got, want)
	}
	if got := textOf(t, c.result("tools/call", `{"name":"inspect","arguments":{"server_name":"locked"}}`), false); !strings.Contains(got, "("+reason+")") {
		t.Errorf("inspect: %s, want %s", got, reason)
	}
	c.try(http.MethodGet, "/status", "").want(t, "the state", http.StatusOK, `"state":"needs more access","reason":`+quote(reason))
	login("--scope", "write")
	eventually(t, "nothing has called it", func() (string, bool) {
		got := c.exec("mcpx", "servers", `{}`)
		return got, strings.HasPrefix(got, "locked: ready")
	})
	if got := c.exec("locked", "hello", `{}`); got != "hello" {
		t.Errorf("with more access: %s", got)
	}
}

// TestSignInPage: the HTTP front has a page that signs in.
func TestSignInPage(t *testing.T) {
	t.Parallel()
	s := signintest.New(t)
	h := serveHTTP(t, needsOAuth(s.URL), options{env: []string{stateFolder(t)}})
	c := h.client("/mcp")
	page := h.url + "/signin/default/locked"
	if got := textOf(t, c.result("tools/call", execParams("locked", "hello", `{}`)), true); !strings.Contains(got, "or open "+page+"; then call again") {
		t.Errorf("before the sign-in: %s", got)
	}
	c.try(http.MethodGet, "/status", "").want(t, "the state", http.StatusOK, `"state":"needs sign-in"`)
	c.try(http.MethodGet, "/health", "").want(t, "the health", http.StatusOK, "ok")
	if status, text := visit(t, h.url+"/oauth/callback?state=x&code=y"); status != http.StatusBadRequest || !strings.Contains(text, "no sign-in is open") {
		t.Errorf("a forged callback: %d %s", status, text)
	}
	if status, text := visit(t, h.url+"/signin/default/nobody"); status == http.StatusOK || !strings.Contains(text, "no such server") {
		t.Errorf("an unknown server: %d %s", status, text)
	}
	if status, text := visit(t, page); status != http.StatusOK || !strings.Contains(text, "You are signed in") {
		t.Fatalf("the page: %d %s", status, text)
	}
	if got := c.exec("locked", "hello", `{}`); got != "hello" {
		t.Errorf("after the sign-in: %s", got)
	}
	c.try(http.MethodPost, "/signout/default/locked", "").want(t, "signing out", http.StatusNoContent, "")
	if s.Count("/revoke") != 1 {
		t.Error("the tokens were not revoked")
	}
	eventually(t, "it needs a sign-in again", func() (string, bool) {
		got := c.try(http.MethodGet, "/status", "")
		got.waitEnd()
		return got.body, strings.Contains(got.body, `"state":"needs sign-in"`)
	})
}
