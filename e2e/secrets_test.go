package e2e

import (
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// sentinels are the secrets of secretConfig, by their place.
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

// secretConfig has a secret in every place where a config can have one.
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

// reveals returns the places of the secrets that a text shows.
func reveals(text string) (places []string) {
	for where, secret := range sentinels {
		if strings.Contains(text, secret) {
			places = append(places, where)
		}
	}
	return places
}

// TestSecretsNeverShow: no secret of the config is on stdout, in the log at any level,
// or in the environment of another child.
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

// TestSecretsNeverShowInCommands: the commands for people hide them too, and those that
// servers print escaped or line by line.
func TestSecretsNeverShowInCommands(t *testing.T) {
	t.Parallel()
	plain, escaped, stored := writeConfig(t, secretConfig(t)), writeConfig(t, escapedConfig(t)), writeConfig(t, storedConfig(t))
	for _, args := range [][]string{
		{"config", "show", plain},
		{"config", "check", plain},
		{"inspect", plain, "failing", "--log-level", "debug"},
		{"exec", plain, "remote", "echo"},
		{"exec", plain, "mcpx", "show_config"},
		{"exec", plain, "keeper", "crash", "--log-level", "debug"},
		{"check", escaped},
		{"check", escaped, "--json"},
		{"config", "show", escaped},
		{"inspect", escaped, "talks"},
		{"inspect", escaped, "talks", "--json"},
		{"inspect", escaped, "talks", "fail", "--json"},
		{"prompts", escaped, "talks", "--json"},
		{"resources", escaped, "talks", "--json"},
		{"exec", escaped, "talks", "fail", "--log-level", "debug"},
		{"exec", escaped, "dies", "echo"},
		{"config", "check", stored},
		{"config", "show", stored},
		{"check", stored, "--json"},
		{"inspect", stored, "talks", "fail", "--json"},
		{"exec", stored, "talks", "fail", "--log-level", "debug"},
		{"exec", stored, "dies", "echo"},
	} {
		name := strings.NewReplacer(plain, "PLAIN", escaped, "ESCAPED", stored, "STORED").Replace(strings.Join(args, " "))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, _ := combined(t, "", append(environment(t), "THE_SECRET="+sentinels["expanded env"]), binary, args...)
			isHidden := strings.Contains(text, "***") || !strings.Contains(name, "ESCAPED")
			if places, f := reveals(text), showsFragment(text); places != nil || f != "" || text == "" || !isHidden {
				t.Errorf("shows the secrets of %q, or %q of one:\n%s", places, f, text)
			}
		})
	}
}
