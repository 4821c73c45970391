package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName matches a test in the docs: its package and function.
var testName = regexp.MustCompile("`([a-z0-9/]+): (Test[A-Za-z0-9]+)`")

// TestDocsNameTests: every test named in the docs exists.
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

// hasTest reports whether a package, given with or without "internal/", has a test.
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

// docsLink matches a link or a picture.
var docsLink = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src)="([^"]+)"`)

// TestDocsLinks: the files and headings that the docs link to exist.
func TestDocsLinks(t *testing.T) {
	t.Parallel()
	for _, page := range docsPages(t) {
		for _, found := range docsLink.FindAllStringSubmatch(readFile(t, page), -1) {
			link := found[1] + found[2]
			if strings.Contains(link, "://") {
				continue
			}
			path, heading, _ := strings.Cut(link, "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, link)
			} else if heading != "" && !hasHeading(readFile(t, target), heading) {
				t.Errorf("%s links to %s, which has no such heading", page, link)
			}
		}
	}
}

// hasHeading reports whether a page has a heading with this anchor.
func hasHeading(text, anchor string) bool {
	dropped := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for _, line := range strings.Split(text, "\n") {
		if title := strings.TrimLeft(line, "#"); title != line {
			title = dropped.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
			if strings.ReplaceAll(title, " ", "-") == anchor {
				return true
			}
		}
	}
	return false
}

var (
	docsName = regexp.MustCompile("`(?:[A-Za-z]+\\.)?([A-Za-z]+)`")
	docsPath = regexp.MustCompile(`[a-z0-9_/]+\.go\b|\b(?:cmd|internal|server|executor|registry|config)(?:/[a-z0-9_]+)+`)
)

// TestDocsNameCode: the packages, files and functions that docs/architecture.md names
// exist, and the functions are in the files of their row.
func TestDocsNameCode(t *testing.T) {
	t.Parallel()
	text := readFile(t, filepath.Join("..", "docs", "architecture.md"))
	_, code, _ := strings.Cut(text, "\n## Packages\n")
	code, _, _ = strings.Cut(code, "\n## Tests\n")
	rows, named := 0, 0
	for line := range strings.Lines(code) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		rows++
		_, answer, _ := strings.Cut(line[1:], "|") // the first cell is a question
		source := docsSource(t, answer)
		for _, name := range docsName.FindAllStringSubmatch(answer, -1) {
			named++
			declared := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type |var |const |\t)` + name[1] + `\b`)
			if !declared.MatchString(source) {
				t.Errorf("%s is not declared in the files of its row: %s", name[0], line)
			}
		}
	}
	if rows < 50 || named < 40 {
		t.Errorf("found %d rows and %d names only", rows, named)
	}
}

// TestDecisionsNameCode: the files and packages that the ADRs name exist.
func TestDecisionsNameCode(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "docs", "adr", "*.md"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		for _, path := range docsPath.FindAllString(readFile(t, page), -1) {
			if !strings.Contains(path, "/") || path == "server/discover" { // a method
				continue
			}
			if files, _ := filepath.Glob(filepath.Join("..", path+"*")); len(files) == 0 { // *: a file of another type
				t.Errorf("%s names %s, which does not exist", filepath.Base(page), path)
			}
		}
	}
}

// docsSource returns the text of the files and packages in a row. A name without a folder
// is in the folder of the one before it.
func docsSource(t *testing.T, row string) string {
	t.Helper()
	var source strings.Builder
	folder := ""
	for _, path := range docsPath.FindAllString(row, -1) {
		if !strings.Contains(path, "/") {
			path = folder + "/" + path
		}
		files := []string{filepath.Join("..", path)}
		if folder = filepath.ToSlash(filepath.Dir(path)); !strings.HasSuffix(path, ".go") {
			folder = path
			files, _ = filepath.Glob(filepath.Join("..", path, "*.go"))
		}
		if len(files) == 0 {
			t.Errorf("the package %s does not exist: %s", path, row)
		}
		for _, file := range files {
			source.WriteString(readFile(t, file))
		}
	}
	return source.String()
}
