package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The reference for users names every key, and its examples are right.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := string(data)

	c, p, u := defaults(), defaultProfile(""), defaultUpstream()
	declared := [][]field{
		c.fields(&p), c.Server.fields(), c.Stdio.fields(), c.Logging.fields(), c.Limits.fields(),
		p.fields(), u.fields(), u.Tools.fields(), {u.nameField()},
	}
	for _, fields := range declared {
		for _, f := range fields {
			if !regexp.MustCompile("[`\"]" + regexp.QuoteMeta(f.name) + "[`\".]").MatchString(docs) {
				t.Errorf("%s is not in the docs", f.name)
			}
		}
	}

	for _, block := range strings.Split(docs, "```jsonc\n")[1:] {
		source, _, _ := strings.Cut(block, "```")
		if c := mustParse(t, source); c.Warnings != nil {
			t.Errorf("%v in\n%s", c.Warnings, source)
		}
	}
}
