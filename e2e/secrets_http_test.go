package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// telltale returns a remote upstream that repeats its key, address and user.
func telltale(t *testing.T, answer func(w http.ResponseWriter, id, told string)) map[string]any {
	t.Helper()
	url := remoteUpstream(t, func(w http.ResponseWriter, r *http.Request, id string) {
		user, password, _ := r.BasicAuth()
		answer(w, id, quote(fmt.Sprintf("bad key %s in %s of %s:%s", r.Header.Get("X-Api-Key"), r.URL, user, password)))
	})
	return map[string]any{
		"url":     strings.Replace(url, "http://", "http://me:"+sentinels["remote user"]+"@", 1) + "/mcp?api_key=" + sentinels["remote query"],
		"headers": map[string]string{"X-Api-Key": sentinels["remote header"]},
		"timeout": "2s",
	}
}

// TestSecretsNeverShowOverHTTP: no secret is in answers, /status, /metrics or the log of
// mcpx-sse at level debug, though upstreams repeat them.
func TestSecretsNeverShowOverHTTP(t *testing.T) {
	t.Parallel()
	status := func(code int) func(w http.ResponseWriter, id, told string) {
		return func(w http.ResponseWriter, _, told string) {
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, `{"error":{"message":%s}}`, told)
		}
	}
	remotes := map[string]map[string]any{
		"fails":   telltale(t, status(http.StatusInternalServerError)),
		"refuses": telltale(t, status(http.StatusUnauthorized)),
		"forgets": telltale(t, status(http.StatusNotFound)),
		"own error": telltale(t, func(w http.ResponseWriter, id, told string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":%s,"data":{"told":%s}}}`, id, told, told)
		}),
		"hangs up": telltale(t, func(http.ResponseWriter, string, string) { panic(http.ErrAbortHandler) }),
		"redirects": telltale(t, func(w http.ResponseWriter, _, _ string) {
			w.Header().Set("Location", "http://localhost:1/elsewhere?api_key="+sentinels["remote query"])
			w.WriteHeader(http.StatusTemporaryRedirect)
		}),
		"no message": telltale(t, func(w http.ResponseWriter, _, told string) { _, _ = fmt.Fprint(w, told) }),
	}
	for _, format := range []string{"console", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			config := secretConfig(t)
			upstreams := config["mcpServers"].(map[string]any)
			for name, remote := range remotes {
				upstreams[name] = remote
			}
			upstreams["told"] = mcptest.Upstream(t, "-full", "-report")
			env := []string{"THE_SECRET=" + sentinels["expanded env"], "UNRELATED_SECRET=" + sentinels["mcpx's own"]}
			s := serveHTTP(t, config, options{flags: []string{"--log-level", "debug", "--log-format", format}, env: env})
			c := s.caller("/mcp")
			c.token = sentinels["server token"]
			c.initialize()
			var said strings.Builder
			for name := range upstreams {
				for _, params := range []string{inspectParams(name, ""), execParams(name, "go", "{}"), execParams(name, "echo", `{"text":"x"}`), execParams(name, "crash", `{"status":1}`)} {
					m := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":%s}`, name+params, params)).answer()
					said.WriteString(string(m.Result) + string(m.Error))
				}
			}
			for name, remote := range remotes {
				if !strings.Contains(said.String(), name) || remote == nil {
					t.Errorf("%s is not among the answers", name)
				}
			}
			for _, tool := range []string{"servers", "show_config"} {
				said.WriteString(c.exec("mcpx", tool, ""))
			}
			for _, path := range []string{"/status", "/metrics", "/health", "/", "/mcp/no-such-schema", "/sse/no-such-schema"} {
				said.WriteString(c.try(http.MethodGet, path, "").body)
			}
			s.stop()
			s.waitEnd(stopTime)
			if places := reveals(said.String()); places != nil {
				t.Errorf("the answers show the secrets of %q", places)
			}
			if places := reveals(s.errors()); places != nil || !strings.Contains(s.errors(), "***") {
				t.Errorf("the log shows the secrets of %q:\n%s", places, linesWith(s.errors(), places))
			}
		})
	}
}

// linesWith returns the lines that show the secrets of these places.
func linesWith(text string, places []string) (lines string) {
	for line := range strings.SplitSeq(text, "\n") {
		for _, place := range places {
			if strings.Contains(line, sentinels[place]) {
				lines += line + "\n"
			}
		}
	}
	return lines
}

// TestSecretsInProcessLists: no secret is in the command line of mcpx and its watcher, or
// in the environment of another child.
func TestSecretsInProcessLists(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("needs /proc")
	}
	env := []string{"THE_SECRET=" + sentinels["expanded env"], "UNRELATED_SECRET=" + sentinels["mcpx's own"], "MCPX_TOKEN=" + sentinels["server token"]}
	p := start(t, secretConfig(t), options{env: env})
	p.initialize()
	p.exec("other", "pid", "")
	own := fmt.Sprint(p.cmd.Process.Pid)
	for _, pid := range append(pidsBelow(p.cmd.Process.Pid), p.cmd.Process.Pid) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue // it has just ended
		}
		isMcpx := strings.Contains(string(line), binary)
		if places := reveals(string(line)); places != nil && isMcpx {
			t.Errorf("process %d of %s is called %q", pid, own, line)
		}
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(sentinels["mcpx's own"]))
	if got := p.exec("other", "env", ""); reveals(got) != nil || strings.Contains(got, encoded) {
		t.Errorf("the environment of another child: %s", got)
	}
}
