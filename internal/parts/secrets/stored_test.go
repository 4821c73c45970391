package secrets

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/zalando/go-keyring"

	"mcpx/config"
)

// resolve returns the variable A of a server whose config has this value for it.
func resolve(t *testing.T, value string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "mcpx.json")
	source := `{"mcpServers": {"a": {"command": "x", "env": {"A": ` + value + `}}}}`
	c, err := config.Hooks{Secrets: Stored{}}.Parse(file, []byte(source), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	u, err := c.Profiles[0].Upstreams[0].Resolve(t.Context())
	if err != nil {
		return "", err
	}
	return u.Env["A"], nil
}

// TestStored: what a config gets from the keyring and from commands.
func TestStored(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a POSIX system")
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "mock") // there is a session
	keyring.MockInit()
	for name, value := range map[string]string{"github": "correct horse battery", "empty": ""} {
		if err := Set(t.Context(), name, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ name, value, want, err string }{
		{"keyring", `"Bearer ${keyring:github}"`, "Bearer correct horse battery", ""},
		{"not in the keyring", `"${keyring:none}"`, "", "${keyring:none} (used in env.A): not in the keyring; run mcpx secret set none"},
		{"empty in the keyring", `"${keyring:empty}"`, "", "${keyring:empty} (used in env.A): the secret is empty"},
		{"command", `{"cmd": ["echo", "cmd-sentinel", "${keyring:github}"]}`, "cmd-sentinel correct horse battery", ""},
		{"a command fails", `{"cmd": ["false"]}`, "", `{"cmd": …} (used in env.A): false failed: exit status 1`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := resolve(t, test.value)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != test.want || text != test.err {
				t.Errorf("got %q, error %q\nwant %q, error %q", got, text, test.want, test.err)
			}
		})
	}
}

// Without a keyring, the error names the other ways.
func TestStoredWithoutKeyring(t *testing.T) {
	if _, err := os.Stat("/run/user/0/bus"); runtime.GOOS != "linux" || err == nil {
		t.Skip("this system has a keyring")
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	const want = `${keyring:k} (used in env.A): there is no keyring here; use ${file:PATH} or {"cmd": ["PROGRAM", "ARG"]} instead`
	if _, err := resolve(t, `"${keyring:k}"`); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
