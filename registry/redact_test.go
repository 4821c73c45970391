package registry

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/registry/lists"
)

const (
	password = `pa"ss\wörd-987`
	key      = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq/hkiG9w0B+AQEFAASC\n-----END PRIVATE KEY-----\n"
)

// withSecrets returns an upstream that has secrets and responds with the given
// answers.
func withSecrets(t *testing.T, answers map[string]any, flags ...string) map[string]any {
	t.Helper()
	text, err := json.Marshal(answers)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "answers.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	u := mcptest.Upstream(t, append(flags, "-answers", file)...)
	env := u["env"].(map[string]string)
	env["PASSWORD"], env["API_KEY"], env["REGION"] = password, key, "region-7"
	env["TOKEN"], env["PIN_KEY"] = "nabcdef1", "31415926"
	return u
}

func answer(result string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"result": json.RawMessage(result)}
}

// inJSON escapes a text as in a JSON string.
func inJSON(text string) string {
	b, _ := json.Marshal(text)
	return string(b[1 : len(b)-1])
}

func TestListsHideSecrets(t *testing.T) {
	secret, line := inJSON(password), "MIIEvQIBADANBgkq\\/hkiG9w0B+AQEFAASC"
	schema := `{"type": "object", "description": "` + line + `", "properties": {` +
		`"region": {"type": "string", "enum": ["region-7", "region-8"], "default": "region-7"},` +
		`"name": {"type": "string", "title": "` + secret + `", "default": {"name": "` + secret + `"}, "pattern": "^region-7$"}}, "required": ["region"]}`
	tool := `{"name":"region-7","title":"` + secret + `","description":"` + inJSON(key) + `","inputSchema":` + schema + `,"_meta":{"name":"` + secret + `"}}`
	r, _ := run(t, map[string]any{"a": withSecrets(t, map[string]any{
		"tools/list":               answer(`{"tools":[` + tool + `,{"name":"plain","inputSchema":{"type": "object"}}]}`),
		"prompts/list":             answer(`{"prompts":[{"name":"region-7","description":"` + secret + `","arguments":[{"name":"region-7","description":"` + line + `","required":true}]}]}`),
		"resources/list":           answer(`{"resources":[{"uri":"test://region-7","name":"region-7","description":"` + secret + `"}]}`),
		"resources/templates/list": answer(`{"resourceTemplates":[{"uriTemplate":"test://region-7/{id}","name":"one","title":"` + line + `"}]}`),
	}, "-full", "-instructions", "use "+password+" and\n"+key)})
	u, err := r.For(nil).Ready(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	got := u.Tool("region-7")
	shownSchema := `{"type":"object","description":"***","properties":{` +
		`"region":{"type":"string","enum":["region-7","region-8"],"default":"***"},` +
		`"name":{"type":"string","title":"***","default":{"name":"***"},"pattern":"^region-7$"}},"required":["region"]}`
	for _, c := range []struct{ what, got, want string }{
		{"instructions", u.Instructions, "use *** and\n***"},
		{"description", got.Description, "***"},
		{"definition", string(rawjson.Compact(got.Raw)), `{"name":"region-7","title":"***","description":"***","inputSchema":` + shownSchema + `,"_meta":{"name":"***"}}`},
		{"schema to check arguments with", inputText(t, got), string(rawjson.Compact([]byte(schema)))},
		{"prompt", string(u.Prompts[0].Raw), `{"name":"region-7","description":"***","arguments":[{"name":"region-7","description":"***","required":true}]}`},
		{"resource", string(u.Resources[0].Raw), `{"uri":"test://region-7","name":"region-7","description":"***"}`},
		{"template", string(u.Templates[0].Raw), `{"uriTemplate":"test://region-7/{id}","name":"one","title":"***"}`},
		{"plain tool", string(u.Tool("plain").Raw), `{"name":"plain","inputSchema":{"type":"object"}}`},
	} {
		if c.got != c.want {
			t.Errorf("%s: got  %s\nwant %s", c.what, c.got, c.want)
		}
	}
	if s := got.Signature(); strings.Contains(s, `= "region-7"`) || !strings.Contains(s, `"region-7" | "region-8"`) {
		t.Errorf("the signature is %s", s)
	}
}

func TestErrorsHideSecrets(t *testing.T) {
	secret := inJSON(password)
	r, _ := run(t, map[string]any{"a": withSecrets(t, map[string]any{
		"tools/call echo": map[string]any{"error": json.RawMessage(
			`{"code":-32001,"message":"bad ` + secret + `","data":{"` + secret + `":["` + secret + `","` + inJSON(secret) + `","` + inJSON(key) + `","\nregion-7","\nabcdef1"],"n":9007199254740993,"pin":31415926}}`)},
	})})
	_, err := callTool(t.Context(), r, "a", "echo", `{"text":"x"}`)
	var own *rpc.Error
	if !errors.As(err, &own) {
		t.Fatal(err)
	}
	if want := `{"***":["***","***","***","\n***","\nabcdef1"],"n":9007199254740993,"pin":"***"}`; own.Message != "bad ***" || string(own.Data) != want {
		t.Errorf("got %q, %s, want %s", own.Message, own.Data, want)
	}
}

// inputText returns the text of a tool's input schema.
func inputText(t *testing.T, tool *lists.Tool) string {
	t.Helper()
	root, err := tool.Input.Root()
	if err != nil {
		t.Fatal(err)
	}
	return string(root.Raw())
}
