package config

import (
	"slices"
	"strings"
	"testing"
)

func TestSandbox(t *testing.T) {
	for value, want := range map[string]*Sandbox{
		`false`:                  nil,
		`true`:                   {Write: []string{"."}, Network: true},
		`{}`:                     {Write: []string{"."}, Network: true},
		`{"network": false}`:     {Write: []string{"."}},
		`{"write": []}`:          {Network: true},
		`{"best_effort": true}`:  {Write: []string{"."}, Network: true, BestEffort: true},
		`{"write": ["~/a","b"]}`: {Write: []string{"/home/me/a", "b"}, Network: true},
	} {
		c := mustParse(t, `{"mcpServers": {"first": {"command": "x", "sandbox": true}, "a": {"command": "x", "sandbox": `+value+`}, "last": {"command": "x"}}}`, "HOME=/home/me")
		us := c.Profiles[0].Upstreams
		got := us[1].Sandbox
		if (got == nil) != (want == nil) || got != nil && (got.Network != want.Network || got.BestEffort != want.BestEffort || !slices.Equal(got.Write, want.Write)) {
			t.Errorf("%s: got %+v, want %+v", value, got, want)
		}
		if us[0].Sandbox == nil || us[2].Sandbox != nil {
			t.Errorf("%s: other servers have %+v and %+v", value, us[0].Sandbox, us[2].Sandbox)
		}
		if shown := strings.Contains(string(c.Show()), `"~/a"`); shown != strings.Contains(value, "~/a") {
			t.Errorf("%s: shown: %t", value, shown)
		}
	}
}

// A system that cannot restrict a server does not start it.
func TestSandboxElsewhere(t *testing.T) {
	for _, test := range []struct {
		system     string
		bestEffort bool
		ok         bool
	}{{"linux", false, true}, {"darwin", false, false}, {"windows", false, false}, {"darwin", true, true}} {
		if err := sandboxable(&Sandbox{BestEffort: test.bestEffort}, test.system); (err == nil) != test.ok {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
