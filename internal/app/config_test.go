package app

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestConfigDocs: docs/configuration.md names every key of the core and of all parts, and its
// examples are valid.
func TestConfigDocs(t *testing.T) {
	data, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := string(data)

	var schema any
	if err := json.Unmarshal(ConfigHooks().Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	keys := keysOf(schema)
	if len(keys) < 80 || !keys["audit"] || !keys["mcpServers"] {
		t.Fatalf("only %d keys: %v", len(keys), keys)
	}
	for key := range keys {
		if !regexp.MustCompile("[`\"]" + regexp.QuoteMeta(key) + "[`\".]").MatchString(docs) {
			t.Errorf("%s is not in the docs", key)
		}
	}

	variables := map[string]string{
		"MCPX_SESSION_KEY": "bGl0ZXJhbGxpdGVyYWxsaXRlcmFsbGl0ZXJhbGxpdGU=", "REDIS_PASSWORD": "example", "MCPX_HTTP_TOKEN": "x", "CI_TOKEN": "y",
	}
	lookup := func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
	for _, block := range strings.Split(docs, "```jsonc\n")[1:] {
		source, _, _ := strings.Cut(block, "```")
		c, err := ConfigHooks().Parse("/etc/mcpx/mcpx.json", []byte(source), lookup)
		if err != nil || c.Warnings != nil {
			t.Errorf("%v, %v in\n%s", err, c.Warnings, source)
		}
	}
}

// keysOf returns the names of all properties in a JSON Schema.
func keysOf(schema any) map[string]bool {
	keys := map[string]bool{}
	switch v := schema.(type) {
	case map[string]any:
		properties, _ := v["properties"].(map[string]any)
		for key := range properties {
			keys[key] = true
		}
		for _, value := range v {
			for key := range keysOf(value) {
				keys[key] = true
			}
		}
	case []any:
		for _, value := range v {
			for key := range keysOf(value) {
				keys[key] = true
			}
		}
	}
	return keys
}
