package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/parts/signin/signintest"
)

// browserVariable makes the test binary a browser: it opens the address in its last
// argument and follows redirects.
const browserVariable = "E2E_BROWSER"

func browse() {
	response, err := http.Get(os.Args[len(os.Args)-1])
	if err != nil {
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	os.Exit(0)
}

// person runs commands of mcpx like a person, with one home folder.
type person struct {
	t      *testing.T
	env    []string
	config string
}

// newPerson returns a person with a config that has the server "locked". The system has
// no keyring.
func newPerson(t *testing.T, url string) *person {
	t.Helper()
	env := append(environment(t), "XDG_STATE_HOME="+filepath.Join(t.TempDir(), "state"), browserVariable+"=1", "BROWSER="+os.Args[0])
	return &person{t, env, writeConfig(t, map[string]any{
		"auth":       map[string]string{"store": "file"},
		"mcpServers": map[string]any{"locked": map[string]any{"url": url}},
	})}
}

// secretText matches what must never be printed: the tokens of signintest, and codes.
var secretText = regexp.MustCompile(`access-[A-Z2-7]{20}|refresh-[A-Z2-7]{20}|code=`)

// run runs a command and returns its output and exit code.
func (p *person) run(stdin string, args ...string) (output string, code int) {
	p.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Stdin = p.env, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		code = failed.ExitCode()
	} else if err != nil {
		p.t.Fatal(err)
	}
	if secretText.Match(out) {
		p.t.Errorf("mcpx %v prints a secret: %s", args, out)
	}
	return string(out), code
}

// outputs runs a command that succeeds, and returns what it prints.
func (p *person) outputs(args ...string) (stdout, stderr string) {
	p.t.Helper()
	cmd := exec.Command(binary, args...)
	var said strings.Builder
	cmd.Env, cmd.Stderr = p.env, &said
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("mcpx %v: %v\n%s", args, err, &said)
	}
	return string(out), said.String()
}

// state returns the folder of the person's state.
func (p *person) state() string {
	for _, variable := range p.env {
		if folder, ok := strings.CutPrefix(variable, "XDG_STATE_HOME="); ok {
			return folder
		}
	}
	p.t.Fatal("there is no XDG_STATE_HOME")
	return ""
}

// want runs a command and checks its exit code and a part of its output.
func (p *person) want(code int, part string, args ...string) string {
	p.t.Helper()
	out, got := p.run("", args...)
	if got != code || !strings.Contains(out, part) {
		p.t.Fatalf("mcpx %v: exit code %d, want %d and %q\n%s", args, got, code, part, out)
	}
	return out
}

// TestSignIn: a person signs in with the browser, asks for more access and signs out.
func TestSignIn(t *testing.T) {
	t.Parallel()
	s := signintest.New(t)
	s.CallScope = "write"
	p := newPerson(t, s.URL)
	p.want(1, "needs sign-in", "exec", p.config, "locked", "hello")
	p.want(0, "locked            –       –  needs sign-in: run mcpx", "tokens", p.config)
	p.want(1, "error: not ready: 1 of 1 server", "check", p.config)
	p.want(0, "not signed in", "auth", "status", p.config)
	p.want(0, "signed in to locked (basic)", "auth", "login", p.config, "locked")
	p.want(1, "needs more access (write)", "exec", p.config, "locked", "hello")
	p.want(0, "signed in to locked (basic write)", "auth", "login", p.config, "locked", "--scope", "write")
	p.want(0, "hello", "exec", p.config, "locked", "hello")
	p.want(0, "hello", "exec", s.URL, "hello") // without a config
	s.Expire()
	p.want(0, "hello", "exec", p.config, "locked", "hello")

	var status []struct {
		Server, State, Issuer string
		Scopes                []string
		Renews                bool
	}
	out, _ := p.run("", "auth", "status", p.config, "--json")
	if err := json.Unmarshal([]byte(out), &status); err != nil || len(status) != 1 || status[0].State != "signed in" || status[0].Issuer != s.Issuer || len(status[0].Scopes) != 2 || !status[0].Renews {
		t.Errorf("status: %v, %s", err, out)
	}
	p.want(0, "signed out of locked", "auth", "logout", p.config, "locked")
	p.want(0, "not signed in to locked", "auth", "logout", p.config, "locked")
	p.want(1, "needs sign-in", "exec", p.config, "locked", "hello")
	if s.Count("/revoke") != 1 {
		t.Error("the tokens were not revoked")
	}
}

// TestTokensNeverShow: a server that repeats the token it got does not make mcpx show it.
func TestTokensNeverShow(t *testing.T) {
	t.Parallel()
	s := signintest.New(t)
	p := newPerson(t, s.URL)
	p.want(0, "signed in", "auth", "login", p.config, "locked")
	var repeated atomic.Int32
	s.Replace("/mcp", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte("tools/call")) {
			r.Body = io.NopCloser(bytes.NewReader(body))
			s.MCP(w, r)
			return
		}
		repeated.Add(1)
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{
			"code": -32000, "message": "bad header " + r.Header.Get("Authorization"), "data": r.Header,
		}})
	})
	out := p.want(1, "bad header Bearer ***", "exec", p.config, "locked", "hello", "--log-level", "debug") // run fails if a token is in it
	if repeated.Load() != 1 {
		t.Errorf("%d calls\n%s", repeated.Load(), out)
	}
}

// TestSignInElsewhere: a machine without a browser.
func TestSignInElsewhere(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]string{"a device": "--device", "no display": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := signintest.New(t)
			p := newPerson(t, s.URL)
			p.env = append(p.env, "BROWSER=")
			args := []string{"auth", "login", p.config, "locked"}
			if flag != "" {
				args = append(args, flag)
			}
			out := p.want(0, "signed in to locked", args...)
			if !strings.Contains(out, "open "+s.Issuer+"/activate and enter the code ABCD-EFGH") {
				t.Errorf("the code is not shown:\n%s", out)
			}
			p.want(0, "hello", "exec", p.config, "locked", "hello")
		})
	}
	t.Run("paste", func(t *testing.T) {
		t.Parallel()
		s := signintest.New(t)
		p := newPerson(t, s.URL)
		cmd := exec.Command(binary, "auth", "login", p.config, "locked", "--paste")
		cmd.Env = p.env
		stdin, _ := cmd.StdinPipe()
		stderr, _ := cmd.StderrPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		address := regexp.MustCompile(`(http://\S+/authorize\S+)\n`)
		for address.Find(said.Bytes()) == nil {
			b := make([]byte, 4096)
			n, err := stderr.Read(b)
			if err != nil {
				t.Fatalf("%v: %s", err, said.String())
			}
			said.Write(b[:n])
		}
		back, err := signintest.Browse(t.Context(), string(address.FindSubmatch(said.Bytes())[1]))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(stdin, back.String()+"\n"); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		p.want(0, "hello", "exec", p.config, "locked", "hello")
	})
}

// TestSignInErrors: what auth login says when it cannot work.
func TestSignInErrors(t *testing.T) {
	t.Parallel()
	open := httptest.NewServer(http.NotFoundHandler())
	defer open.Close()
	s := signintest.New(t)
	var hits atomic.Int32
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer trap.Close()
	s.Handlers = map[string]http.HandlerFunc{"/token": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, trap.URL, http.StatusTemporaryRedirect)
	}}
	p := newPerson(t, s.URL)
	p.config = writeConfig(t, map[string]any{"auth": map[string]string{"store": "file"}, "mcpServers": map[string]any{
		"locked":  map[string]any{"url": s.URL},
		"open":    map[string]any{"url": open.URL},
		"local":   map[string]any{"command": "x"},
		"header":  map[string]any{"url": s.URL, "headers": map[string]string{"Authorization": "Bearer x"}},
		"none":    map[string]any{"url": s.URL, "auth": map[string]string{"flow": "none"}},
		"nowhere": map[string]any{"url": "http://127.0.0.1:1/mcp"},
		"machine": map[string]any{"url": s.URL, "auth": map[string]string{"flow": "client_credentials", "client_id": "x", "client_secret": "sentinel-secret"}},
	}})
	for server, want := range map[string]struct {
		code int
		text string
	}{
		"locked":  {1, "redirects a token request"},
		"open":    {1, "open does not use OAuth"},
		"local":   {1, "local has no sign-in: mcpx starts it on this machine"},
		"header":  {1, "header has no sign-in: the config sets its Authorization header"},
		"none":    {1, "auth.flow"},
		"nowhere": {1, "connection refused"},
		"machine": {1, "redirects a token request"},
		"lokced":  {1, "did you mean locked?"},
	} {
		if out := p.want(want.code, want.text, "auth", "login", p.config, server); strings.Contains(out, "sentinel") {
			t.Errorf("%s: %s", server, out)
		}
	}
	p.want(1, "nobody pasted an address", "auth", "login", p.config, "locked", "--paste")
	p.want(2, "can't be used together", "auth", "login", p.config, "locked", "--device", "--paste")
	if hits.Load() != 0 {
		t.Error("a redirected token request was sent on")
	}
}

// raceProcesses and raceExpiries are the size of TestRefreshRace.
const (
	raceProcesses = 5
	raceExpiries  = 100
)

// TestRefreshRace: five mcpx share one sign-in. However often its token expires, exactly
// one of them refreshes it, and the rotating refresh token is never used twice.
func TestRefreshRace(t *testing.T) {
	t.Parallel()
	s := signintest.New(t)
	p := newPerson(t, s.URL)
	p.want(0, "signed in", "auth", "login", p.config, "locked")
	var all []*process
	for range raceProcesses {
		m := start(t, map[string]any{"auth": map[string]string{"store": "file"}, "mcpServers": map[string]any{"locked": map[string]any{"url": s.URL}}}, options{env: p.env[len(p.env)-3:]})
		m.initialize()
		all = append(all, m)
	}
	for round := 1; round <= raceExpiries; round++ {
		s.Expire()
		var calls sync.WaitGroup
		for _, m := range all {
			calls.Go(func() {
				if got := m.result("tools/call", execParams("locked", "hello", "")); !strings.Contains(got, `"hello"`) || strings.Contains(got, "isError\":true") {
					t.Errorf("round %d: %s", round, got)
				}
			})
		}
		calls.Wait()
		if t.Failed() {
			return
		}
		if got := s.Grants("refresh_token"); got != round || s.Reused() != 0 {
			t.Fatalf("round %d: %d refreshes, %d refresh tokens used twice", round, got, s.Reused())
		}
	}
}

// TestKilledRefresh: a process dies after it has sent its refresh token, and before it has
// saved the new one. The others ask for a sign-in, and go on after it.
func TestKilledRefresh(t *testing.T) {
	t.Parallel()
	s := signintest.New(t)
	p := newPerson(t, s.URL)
	p.want(0, "signed in", "auth", "login", p.config, "locked")
	config := map[string]any{"auth": map[string]string{"store": "file"}, "mcpServers": map[string]any{"locked": map[string]any{"url": s.URL}}}
	victim, other := start(t, config, options{env: p.env[len(p.env)-3:]}), start(t, config, options{env: p.env[len(p.env)-3:]})
	victim.wantCode = anyCode
	for _, m := range []*process{victim, other} {
		m.initialize()
		if got := m.exec("locked", "hello", ""); got != "hello" {
			t.Fatal(got)
		}
	}
	s.Expire()
	var once sync.Once
	s.Replace("/token", func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() {
			s.Token(httptest.NewRecorder(), r) // the token is rotated, and nobody gets it
			_ = victim.cmd.Process.Kill()
			<-victim.ended
			panic(http.ErrAbortHandler)
		})
		s.Token(w, r)
	})
	victim.send("99", "tools/call", execParams("locked", "hello", ""))
	<-victim.ended
	for range 3 {
		if got := other.execError("locked", "hello", ""); !strings.Contains(got, "needs sign-in") {
			t.Errorf("after the end of the other process: %s", got)
		}
	}
	if got := s.Grants("refresh_token"); got != 2 {
		t.Errorf("%d refreshes, want the lost one and one that was refused", got)
	}
	p.want(0, "signed in", "auth", "login", p.config, "locked")
	eventually(t, "a call after the sign-in", func() (string, bool) {
		got := other.result("tools/call", execParams("locked", "hello", ""))
		return got, !strings.Contains(got, `"isError":true`)
	})
}
