package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"mcpx/internal/jsonc"
)

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
