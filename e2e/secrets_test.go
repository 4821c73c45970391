package e2e

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// sentinels are the secrets of the config below, by where they stand.
var sentinels = map[string]string{
	"env":           "sentinel-env-4711",
	"expanded env":  "sentinel-expanded-4711",
	"arg":           "sentinel-arg-4711",
	"arg with =":    "sentinel-equals-4711",
	"header":        "sentinel-header-4711",
	"password":      "sentinel-password-4711",
	"query":         "sentinel-query-4711",
	"server token":  "sentinel-server-4711",
	"mcpx's own":    "sentinel-own-4711",
	"failing start": "sentinel-failing-4711",
	"remote header": "sentinel-remote-header-4711",
	"remote query":  "sentinel-remote-query-4711",
	"remote user":   "sentinel-remote-user-4711",
}

func secretConfig(t *testing.T) map[string]any {
	keeper := mcptest.Upstream(t, "-token", sentinels["arg"])
	keeper["env"].(map[string]string)["API_KEY"] = sentinels["env"]
	expanded := mcptest.Upstream(t, "-token="+sentinels["arg with ="])
	expanded["env"].(map[string]string)["API_KEY"] = "${THE_SECRET}"
	failing := mcptest.Upstream(t, "-exit", "1", "-token", sentinels["failing start"])
	return map[string]any{
		"mcpServers": map[string]any{
			"keeper":   keeper,
			"expanded": expanded,
			"failing":  failing,
			"other":    mcptest.Upstream(t),
			"remote": map[string]any{
				"url":     "https://me:" + sentinels["password"] + "@localhost:1/mcp?api_key=" + sentinels["query"],
				"headers": map[string]string{"Authorization": "Bearer " + sentinels["header"]},
			},
		},
		"server": map[string]any{"token": sentinels["server token"]},
	}
}

// reveals names the sentinels that a text shows.
func reveals(text string) (places []string) {
	for where, secret := range sentinels {
		if strings.Contains(text, secret) {
			places = append(places, where)
		}
	}
	return places
}

func TestSecretsNeverShow(t *testing.T) {
	t.Parallel()
	config := secretConfig(t)
	env := []string{"THE_SECRET=" + sentinels["expanded env"], "UNRELATED_SECRET=" + sentinels["mcpx's own"]}
	p := start(t, config, options{flags: []string{"--log-level", "debug"}, env: env})
	p.initialize()
	if got := p.exec("keeper", "echo", `{"text":"the keeper works"}`); got != "the keeper works" {
		t.Errorf("got %q", got)
	}
	for _, server := range []string{"keeper", "expanded", "other", "mcpx"} {
		p.inspect(server, "")
	}
	p.waitStderr("bad token ***, bad key ***")
	for _, server := range []string{"failing", "remote"} {
		p.inspectError(server, "")
		p.execError(server, "echo", "{}")
	}
	if got := p.inspectError("failing", ""); !strings.HasSuffix(got, "\n  bad token ***, bad key ") {
		t.Errorf("the last lines of the failing one: %q", got)
	}
	p.exec("mcpx", "servers", "")
	p.exec("mcpx", "search", `{"query":"echo"}`)
	shown := p.exec("mcpx", "show_config", "")
	if n := strings.Count(shown, "***"); n < 7 || !strings.Contains(shown, "${THE_SECRET}") {
		t.Errorf("show_config hides %d values, want 7 at least, and shows the reference:\n%s", n, shown)
	}
	p.execError("keeper", "crash", `{"status":1}`)
	p.exec("expanded", "echo", `{"text":"x"}`)
	for _, entry := range strings.Split(p.exec("other", "env", ""), "\n") {
		if places := reveals(entry); places != nil {
			t.Errorf("another child's environment has %s: secrets of %q", entry, places)
		}
	}
	_ = p.stdin.Close()
	p.waitEnd(stopTime)
	if places := reveals(p.output()); places != nil {
		t.Errorf("stdout shows the secrets of %q", places)
	}
	if places := reveals(p.errors()); places != nil {
		t.Errorf("stderr shows the secrets of %q:\n%s", places, p.errors())
	}
}

func TestSecretsNeverShowInCommands(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, secretConfig(t))
	for _, args := range [][]string{
		{"config", "show", path},
		{"config", "check", path},
		{"inspect", path, "failing", "--log-level", "debug"},
		{"exec", path, "remote", "echo"},
		{"exec", path, "mcpx", "show_config"},
		{"exec", path, "keeper", "crash", "--log-level", "debug"},
	} {
		t.Run(strings.ReplaceAll(strings.Join(args, " "), path, "CONFIG"), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(binary, args...)
			cmd.Env = append(environment(t), "THE_SECRET="+sentinels["expanded env"])
			text, err := cmd.CombinedOutput()
			if cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if places := reveals(string(text)); places != nil || len(text) == 0 {
				t.Errorf("shows the secrets of %q:\n%s", places, text)
			}
		})
	}
}

// TestBuiltin looks at what mcpx says of itself.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	described := mcptest.Upstream(t)
	described["description"] = "the good one"
	described["tools"] = map[string]any{"allow": []string{"echo", "pid", "env"}}
	p := serve(t, map[string]any{"good": described, "gone": map[string]any{"command": "mcpx-no-such-program"}})
	p.initialize()
	listing := strings.Split(p.inspect("mcpx", ""), "\n")
	for i, want := range []string{
		"mcpx: 4 tools",
		"search(query: string, limit?: integer /*1..50*/ = 10): Find tools of all servers by what they do",
		"read_result(id: string, offset?: integer",
		"servers(): State, number of tools and token cost of every server",
		"show_config(): The configuration in use, secrets hidden",
	} {
		if len(listing) != 5 || !strings.HasPrefix(listing[i], want) {
			t.Errorf("line %d of %q, want %q", i, listing, want)
		}
	}
	var definition struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	if err := json.Unmarshal([]byte(p.inspect("mcpx", "search")), &definition); err != nil || definition.Name != "search" || definition.InputSchema == nil {
		t.Errorf("inspect(mcpx, search): %+v, %v", definition, err)
	}
	unlessStarting := func(tool, arguments string) (text string) { // what waits is started now and then
		settled(t, tool, func() (string, bool) {
			text = p.exec("mcpx", tool, arguments)
			return text, !strings.Contains(text, "starting")
		})
		return text
	}
	search := unlessStarting("search", `{"query":"process id","limit":2}`)
	if !strings.HasPrefix(search, "good: ") || !strings.Contains(search, "good: pid(): The server's process id") ||
		!strings.HasSuffix(search, "\nnot searched, since their tools are not known: gone (waiting)") || strings.Count(search, "\n") != 2 {
		t.Errorf("search answers\n%s", search)
	}
	servers := strings.Split(unlessStarting("servers", ""), "\n")
	if len(servers) != 3 || !strings.HasPrefix(servers[0], "gone: waiting, 0 tools, ") || !strings.Contains(servers[0], `command "mcpx-no-such-program" was not found`) ||
		!strings.HasPrefix(servers[1], "good: ready, 3 tools, ~") || !strings.HasSuffix(servers[1], "; the good one") || servers[2] != "mcpx: built in" {
		t.Errorf("servers answers %q", servers)
	}
	var shown map[string]any
	if err := json.Unmarshal([]byte(p.exec("mcpx", "show_config", "")), &shown); err != nil || shown["schemas"] == nil || shown["limits"] == nil {
		t.Errorf("show_config is no config: %v, %v", shown, err)
	}
	if got, want := p.execError("mcpx", "serach", "{}"), `server "mcpx" has no tool "serach"; did you mean "search"? Its tools: search, read_result, servers, show_config`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := p.execError("mcpx", "search", "{}"); !strings.HasPrefix(got, "arguments.query: required\nsearch(") {
		t.Errorf("got %q", got)
	}
}
