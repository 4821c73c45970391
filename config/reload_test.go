package config

import (
	"fmt"
	"testing"
)

func TestKeepsSession(t *testing.T) {
	const entry = `"command":"x","args":["sesame99"],"env":{"KEY":"hunter2"}`
	for name, test := range map[string]struct {
		next  string
		keeps bool
	}{
		"the same":           {entry, true},
		"order of keys":      {`"env":{"KEY":"hunter2"},"args":["sesame99"],"command":"x"`, true},
		"description":        {entry + `,"description":"new"`, true},
		"filter":             {entry + `,"tools":{"deny":["a*"]}`, true},
		"time limits":        {entry + `,"startup_timeout":"1s","timeout":"2s","max_timeout":"3s","idle_stop":"4m"`, true},
		"argument":           {`"command":"x","args":["2"],"env":{"KEY":"hunter2"}`, false},
		"isolation":          {entry + `,"isolation":"client"`, false},
		"start":              {entry + `,"start":"lazy"`, false},
		"a variable not set": {`"command":"x","args":["sesame99"],"env":{"KEY":"${NOT_SET}"}`, false},
		"another secret":     {`"command":"x","args":["${PASSWORD}"],"env":{"KEY":"hunter2"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			one, next := upstreamOf(t, entry), upstreamOf(t, test.next)
			if got := one.KeepsSession(next); got != test.keeps {
				t.Errorf("%v, want %v", got, test.keeps)
			}
		})
	}
}

// upstreamOf returns the upstream of a config with this entry.
func upstreamOf(t *testing.T, entry string) *Upstream {
	t.Helper()
	c, err := Parse("x.json", []byte(`{"mcpServers":{"a":{`+entry+`}}}`), variables("PASSWORD=sesame99"))
	if err != nil {
		t.Fatal(err)
	}
	return &c.Profiles[0].Upstreams[0]
}

// TestKeepHidingIsBounded: many reloads with new secrets do not make the redaction slower
// and slower.
func TestKeepHidingIsBounded(t *testing.T) {
	u := upstreamOf(t, `"command":"x"`)
	for i := range 10 * maxResolved {
		u.secrets.add([]string{fmt.Sprintf("secret-%d", i)})
		next := upstreamOf(t, `"command":"x"`)
		next.KeepHiding(u)
		u = next
	}
	if n := len(u.secrets.redactor.Load().secrets); n > maxResolved+1 {
		t.Errorf("%d secrets are kept, want at most %d", n, maxResolved+1)
	}
	if last := fmt.Sprintf("secret-%d", 10*maxResolved-1); u.Redact(last) == last {
		t.Error("the newest secret is shown")
	}
}
