package config

import (
	"strings"
	"testing"
)

type remote struct {
	At      Address
	Headers []Named[string]
}

func remoteSection() *SectionOf[remote] {
	return NewSection(AtTop, remote{}, func(v *remote) []Field {
		return []Field{{"remote", Required(Object([]Field{
			{"url", AddressOf(&v.At), "Where."},
			{"headers", Headers(&v.Headers), "Which."},
		}), "url"), "A service."}}
	})
}

// TestRemote: the keys of a service that mcpx uses have references, and their secrets are not
// shown.
func TestRemote(t *testing.T) {
	section := remoteSection()
	hooks := Hooks{Sections: []Section{section}}
	c, err := hooks.Parse("/etc/mcpx.json", []byte(`{"mcpServers": {}, "remote": {
		"url": "https://${HOST}/v1?api_key=rosebud-rosebud", "headers": {"Authorization": "Bearer ${KEY}", "X-Team": "tea-party"}}}`),
		variables("HOST=example.com", "KEY=open-sesame"))
	if err != nil {
		t.Fatal(err)
	}
	v := section.Of(c.Parts)
	if v.At.URL != "https://example.com/v1?api_key=rosebud-rosebud" || len(v.Headers) != 2 || v.Headers[0] != (Named[string]{"Authorization", "Bearer open-sesame"}) {
		t.Errorf("got %+v", v)
	}
	shown := string(c.Show())
	for _, secret := range []string{"rosebud", "sesame", "tea-party"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%s is in\n%s", secret, shown)
		}
	}
	if want := `"url": "https://${HOST}/v1?api_key=***"`; !strings.Contains(shown, want) {
		t.Errorf("%s is not in\n%s", want, shown)
	}
	if schema := string(hooks.Schema()); !strings.Contains(schema, `"remote"`) {
		t.Errorf("no remote in\n%s", schema)
	}
}

func TestRemoteProblems(t *testing.T) {
	for _, row := range []struct{ name, remote, want string }{
		{"no url", `{"headers": {}}`, `needs "url"`},
		{"no object", `[]`, "expected object"},
		{"not a web address", `{"url": "ftp://rosebud"}`, "absolute http or https"},
		{"a variable that is not set", `{"url": "http://${NONE}"}`, "NONE is not set"},
		{"a line break", `{"url": "http://a", "headers": {"A": "rosebud\nrosebud"}}`, "line break"},
		{"a header's name", `{"url": "http://a", "headers": {"A B": "x"}}`, "must not contain"},
	} {
		_, err := Hooks{Sections: []Section{remoteSection()}}.Parse("/etc/mcpx.json", []byte(`{"mcpServers": {}, "remote": `+row.remote+`}`), variables())
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(strings.Split(err.Error(), "\n")[0], "rosebud") {
			t.Errorf("%s: %v, want %s", row.name, err, row.want)
		}
	}
}
