package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// threeProfiles returns profiles with a server of the same name each; the last is off.
func threeProfiles(t *testing.T) map[string]any {
	profile := func(name string) map[string]any {
		return map[string]any{"mcpServers": map[string]any{"a": mcptest.Upstream(t, "-full", "-name", name)}}
	}
	return map[string]any{"schemas": map[string]any{
		"default": profile("default"), "work": profile("work"), "off": with(profile("off"), "enabled", false),
	}}
}

// TestHTTPProfiles: profiles with a server of the same name never see each other's.
func TestHTTPProfiles(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, threeProfiles(t), options{})
	clients := map[string]*caller{"": s.client("/mcp"), "default": s.client("/mcp/default"), "work": s.client("/mcp/work")}
	pids := map[string]string{}
	for name, c := range clients {
		pids[name] = c.exec("a", "pid", "")
	}
	if pids[""] != pids["default"] || pids["work"] == pids["default"] {
		t.Errorf("processes by profile: %v, want one for each", pids)
	}
	for _, name := range []string{"default", "work"} {
		if got := clients[name].result("resources/read", `{"uri":"own://`+name+`"}`); !strings.Contains(got, "of "+name) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if m := clients["work"].sendRequest("resources/read", `{"uri":"own://default"}`).answer(); strings.Contains(m.line, "of default") {
		t.Errorf("one profile reads the other's resource: %s", m.line)
	}
	t.Run("updates and list changes stay in their profile", func(t *testing.T) {
		mine, other := clients["default"].listen(), clients["work"].listen()
		for _, name := range []string{"default", "work"} {
			clients[name].result("resources/subscribe", `{"uri":"test://one"}`)
		}
		clients["work"].exec("a", "say", `{"method":"notifications/resources/updated","params":[{"uri":"test://one"}]}`)
		other.next(0)
		clients["default"].exec("a", "pid", "")
		if lines := mine.lines(); len(lines) > 0 {
			t.Errorf("default was told %q", lines)
		}
	})
	for _, path := range []string{"/mcp/nothing", "/mcp/off", "/sse/nothing", "/sse/off"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			if strings.HasPrefix(path, "/sse") && method != "GET" {
				continue
			}
			x := s.caller("").try(method, path, initializeLine("2025-11-25", "{}"))
			x.want(t, method+" "+path, 404, "default, work")
		}
	}
	x := s.caller("").try("GET", "/status", "")
	var status struct {
		Schemas map[string][]struct {
			Name, State string
			Tools       int
		}
	}
	if err := json.Unmarshal([]byte(x.body), &status); err != nil || len(status.Schemas) != 2 || len(status.Schemas["work"]) != 1 || status.Schemas["work"][0].Name != "a" || status.Schemas["work"][0].State != "ready" {
		t.Errorf("/status: %s (%v)", x.body, err)
	}
}

// TestHTTPOneProfile: with --schema only that profile is started and served, also on paths
// that name none.
func TestHTTPOneProfile(t *testing.T) {
	t.Parallel()
	s := serveHTTP(t, threeProfiles(t), options{flags: []string{"--schema", "work"}})
	for _, path := range []string{"/mcp", "/mcp/work"} {
		c := s.client(path)
		if got := c.result("resources/read", `{"uri":"own://work"}`); !strings.Contains(got, "of work") {
			t.Errorf("%s: %s", path, got)
		}
	}
	s.caller("").try("POST", "/mcp/default", initializeLine("2025-11-25", "{}")).want(t, "/mcp/default", 404, "work")
	if log := s.errors(); strings.Contains(log, "schema=default") {
		t.Errorf("another profile was started:\n%s", log)
	}
}

// TestHTTPByName: a link to mcpx with the name mcpx-sse serves over HTTP, as mcpx-sse does.
func TestHTTPByName(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	link := filepath.Join(folder, filepath.Base(binaryHTTP))
	if os.Symlink(binary, link) != nil { // Windows lets few users create symbolic links
		if err := os.Link(binary, link); err != nil {
			t.Fatal(err)
		}
	}
	config := writeConfig(t, map[string]any{"mcpServers": map[string]any{}, "server": map[string]any{"host": "0.0.0.0"}})
	for program, want := range map[string]int{binary: 0, binaryHTTP: 2, link: 2} { // over HTTP, this address needs a token
		if text, code := combined(t, folder, environment(t), program, config); code != want || strings.Contains(text, "token") != (want == 2) {
			t.Errorf("%s: exit code %d\n%s", program, code, text)
		}
	}
}

// TestHTTPByFlag: mcpx --http is mcpx-sse, and a client cannot end it.
func TestHTTPByFlag(t *testing.T) {
	t.Parallel()
	text := func(program string) string {
		out, err := exec.Command(program, "--version").Output()
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(out), " ")
		return rest
	}
	if text(binary) != text(binaryHTTP) {
		t.Errorf("versions: %s and %s", text(binary), text(binaryHTTP))
	}
	s := serveHTTP(t, one(t), options{program: binary, flags: []string{"--http"}})
	if got := s.client("/mcp").exec("a", "echo", `{"text":"x"}`); got != "x" {
		t.Errorf("got %q", got)
	}
	c := s.client("/mcp")
	c.deliver(`{"jsonrpc":"2.0","method":"notifications/exit"}`)
	if got := s.client("/mcp").exec("a", "echo", `{"text":"still here"}`); got != "still here" {
		t.Errorf("got %q", got)
	}
}
