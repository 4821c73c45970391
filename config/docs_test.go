package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/jsonc"
)

// TestDocs: docs/configuration.md names every key, and its examples are valid.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	docs := string(data)

	c, p, u := defaults(), defaultProfile(""), defaultUpstream()
	declared := [][]field{
		c.fields(&p), c.Server.fields(), c.Stdio.fields(), c.Logging.fields(), c.Limits.fields(),
		p.fields(), u.fields(), u.Tools.fields(), u.Auth.fields(), c.Auth.fields(), {u.nameField()},
		c.Server.Auth.fields(), c.Server.Auth.OIDC.fields(), new(Token).fields(),
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
		if c := mustParse(t, source, "MCPX_SESSION_KEY=bGl0ZXJhbGxpdGVyYWxsaXRlcmFsbGl0ZXJhbGxpdGU=", "REDIS_PASSWORD=example", "MCPX_HTTP_TOKEN=x", "CI_TOKEN=y"); c.Warnings != nil {
			t.Errorf("%v in\n%s", c.Warnings, source)
		}
	}
}

// TestDocsProblems: the problems in docs/configuration.md are those of the file above them.
func TestDocsProblems(t *testing.T) {
	data, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, docs, _ := strings.Cut(string(data), "## Problems")
	_, docs, _ = strings.Cut(docs, "```json\n")
	file, docs, _ := strings.Cut(docs, "```")
	_, docs, _ = strings.Cut(docs, "```\n")
	want, _, ok := strings.Cut(docs, "```")

	_, err = Parse("mcpx.json", []byte(file), variables())
	var problems *jsonc.Error
	if !errors.As(err, &problems) || !ok {
		t.Fatalf("%v, shown %v", err, ok)
	}
	var got strings.Builder
	for _, w := range problems.Warnings {
		fmt.Fprintf(&got, "warning: %s\n", w)
	}
	fmt.Fprintf(&got, "error: %v\n", problems)
	if got.String() != want {
		t.Errorf("the docs have\n%s\nand it is\n%s", want, got.String())
	}
}
