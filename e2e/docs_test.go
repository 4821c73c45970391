package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName is how the docs name a test: its package and the function.
var testName = regexp.MustCompile("`([a-z0-9/]+): (Test[A-Za-z0-9]+)`")

// TestDocsNameTests: every test that the docs name exists.
func TestDocsNameTests(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"security.md", "reliability.md"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		named := testName.FindAllStringSubmatch(string(text), -1)
		if len(named) < 20 {
			t.Errorf("%s names %d tests only", page, len(named))
		}
		for _, name := range named {
			if !hasTest(t, name[1], name[2]) {
				t.Errorf("%s names %s, which does not exist", page, name[0])
			}
		}
	}
}

// hasTest reports whether a package, by its path or the end of it, has a test.
func hasTest(t *testing.T, path, test string) bool {
	t.Helper()
	for _, dir := range []string{filepath.Join("..", path), filepath.Join("..", "internal", path)} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "\nfunc "+test+"(t *testing.T) {") {
				return true
			}
		}
	}
	return false
}
