package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// The secrets of escapedConfig. The fragments are the same in every escaped form.
const (
	secretKey      = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq/hkiG9w0B+AQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----\n"
	secretPassword = `pa"ss\wörd-987`
)

var secretFragments = []string{"MIIEvQ", "hkiG9w0B", "AoIBAQC7", "rd-987"}

// showsFragment returns the first secret fragment that a text has, if any.
func showsFragment(text string) string {
	for _, f := range secretFragments {
		if strings.Contains(text, f) {
			return f
		}
	}
	return ""
}

// escapedConfig has a server that repeats its secrets in everything it sends, and one
// that does so on stderr and exits.
func escapedConfig(t *testing.T) map[string]any {
	t.Helper()
	text := quote("uses " + secretPassword + " and\n" + secretKey)
	file := writeFile(t, "answers.json", `{
		"tools/list": {"result": {"tools": [
			{"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string", "default": `+text+`}}}},
			{"name": "crash", "description": "Die during the call", "inputSchema": {"type": "object"}},
			{"name": "fail", "title": `+text+`, "description": `+text+`, "inputSchema": {"type": "object", "properties": {"key": {"type": "string", "description": `+text+`, "default": `+text+`}}}}]}},
		"tools/call fail": {"error": {"code": -32001, "message": `+text+`, "data": {"told": `+text+`, "again": `+quote(text)+`}}},
		"prompts/list": {"result": {"prompts": [{"name": "one", "description": `+text+`, "arguments": [{"name": "a", "description": `+text+`}]}]}},
		"resources/list": {"result": {"resources": [{"uri": "test://one", "name": "one", "description": `+text+`}]}},
		"resources/templates/list": {"result": {"resourceTemplates": [{"uriTemplate": "test://{id}", "name": "one", "description": `+text+`}]}}}`)
	upstreams := map[string]any{
		"talks": mcptest.Upstream(t, "-full", "-token", "x", "-answers", file),
		"dies":  mcptest.Upstream(t, "-exit", "1", "-token", "x"),
	}
	for _, u := range upstreams {
		env := u.(map[string]any)["env"].(map[string]string)
		env["API_KEY"], env["DB_PASSWORD"] = secretKey, secretPassword
	}
	return map[string]any{"mcpServers": upstreams}
}

// storedConfig is escapedConfig with the secrets in a file and in the output of a command.
func storedConfig(t *testing.T) map[string]any {
	t.Helper()
	config := escapedConfig(t)
	key, password := writeFile(t, "key", secretKey+"\n"), writeFile(t, "password", secretPassword+"\n")
	for _, u := range config["mcpServers"].(map[string]any) {
		server, env := u.(map[string]any), map[string]any{}
		for name, value := range server["env"].(map[string]string) {
			env[name] = value
		}
		env["API_KEY"], env["DB_PASSWORD"] = "${file:"+key+"}", map[string]any{"cmd": []string{"cat", password}}
		server["env"] = env
	}
	return config
}

// statusOf returns the state and the stderr of a server in /status, profile default.
func statusOf(t *testing.T, text, server string) (state string, stderr []string) {
	t.Helper()
	var status struct {
		Schemas map[string][]struct {
			Name, State string
			Stderr      []string
		}
	}
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		t.Fatalf("/status: %v in %s", err, text)
	}
	for _, u := range status.Schemas["default"] {
		if u.Name == server {
			return u.State, u.Stderr
		}
	}
	return "", nil
}

// TestSecretsOfSeveralLines: secrets of several lines, and escaped ones, are hidden in
// everything that mcpx repeats from a server, except results.
func TestSecretsOfSeveralLines(t *testing.T) {
	t.Parallel()
	testSecretsOfSeveralLines(t, escapedConfig(t))
}

// TestStoredSecretsNeverShow: the same holds for secrets from files and commands.
func TestStoredSecretsNeverShow(t *testing.T) {
	t.Parallel()
	testSecretsOfSeveralLines(t, storedConfig(t))
}

func testSecretsOfSeveralLines(t *testing.T, config map[string]any) {
	t.Helper()
	s := serveHTTP(t, config, options{flags: []string{"--log-level", "debug"}})
	c := s.client("/mcp")
	flat := s.client("/mcp?expose=flat")
	said := map[string]string{}
	call := func(params string) string { return c.result("tools/call", params) }
	eventually(t, "the stderr of a ready server", func() (string, bool) {
		said["/status"] = c.try(http.MethodGet, "/status", "").body
		state, lines := statusOf(t, said["/status"], "talks")
		return said["/status"], state == "ready" && slices.Equal(lines, []string{"bad token x, bad key ***", "***"})
	})
	said["inspect"] = call(inspectParams("talks", ""))
	said["inspect a tool"] = call(inspectParams("talks", "fail"))
	said["schema of a tool"] = call(execParams("mcpx", "schema", `{"server":"talks","tool":"fail"}`))
	said["search"] = call(execParams("mcpx", "search", `{"query":"crash fail uses"}`))
	said["servers"] = call(execParams("mcpx", "servers", ""))
	said["error"] = call(execParams("talks", "fail", "{}"))
	said["failed start"] = call(execParams("dies", "echo", "{}"))
	said["tools"] = flat.result("tools/list", "{}")
	said["prompts"] = flat.result("prompts/list", "{}")
	said["resources"] = flat.result("resources/list", "{}")
	said["templates"] = flat.result("resources/templates/list", "{}")
	if got := c.exec("talks", "echo", `{"text":`+quote(secretPassword)+`}`); got != secretPassword {
		t.Errorf("arguments and results must stay as they are, got %q", got)
	}
	asJSON, err := json.Marshal(secretPassword)
	if err != nil {
		t.Fatal(err)
	}
	last := strings.Join([]string{
		string(asJSON), strconv.Quote(secretPassword), strconv.QuoteToASCII(secretPassword), quote(string(asJSON)), url.QueryEscape(secretPassword),
		`'pa"ss\\w\xf6rd-987'`, strconv.Quote(secretKey),
	}, "\n")
	said["crash"] = call(execParams("talks", "crash", `{"status":1,"stderr":`+quote(last)+`}`))
	said["/status after it"] = c.try(http.MethodGet, "/status", "").body
	for what, text := range said {
		if f := showsFragment(text); f != "" || !strings.Contains(text, "***") && what != "servers" {
			t.Errorf("%s shows %q of a secret:\n%s", what, f, text)
		}
	}
	s.stop()
	s.waitEnd(stopTime)
	if f := showsFragment(s.errors()); f != "" {
		t.Errorf("the log shows %q of a secret:\n%s", f, clip(s.errors()))
	}
}
