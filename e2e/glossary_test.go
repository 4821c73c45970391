package e2e

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// notGlossary are the places where a word of the glossary's third column may be used.
var notGlossary = []struct{ word, path, reason string }{
	{"", "docs/architecture.md", "the glossary itself"},
	{"", "e2e/glossary_test.go", "its test"},
	{"era", "e2e/interop/", "what the clients that are tested there call it"},
	{"modern", "e2e/interop/", "what the clients that are tested there call it"},
}

// foreignNames are names of libraries that have such a word.
var foreignNames = strings.NewReplacer("mcp.IsModernProtocol", "")

// TestGlossary: nothing in the code and the docs is called by a word that the glossary
// forbids. Quoted words in its third column are checked, in names, comments and texts.
func TestGlossary(t *testing.T) {
	t.Parallel()
	words := forbiddenWords(readFile(t, filepath.Join("..", "docs", "architecture.md")))
	if len(words) < 10 {
		t.Fatalf("the glossary forbids only %q", words)
	}
	files := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.Base(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name == "node_modules" || name != ".." && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		}
		prose := proseOf(path)
		if entry.IsDir() || prose == nil {
			return nil
		}
		files++
		relative, _ := filepath.Rel("..", path)
		for _, found := range forbiddenIn(prose(foreignNames.Replace(readFile(t, path))), words, filepath.ToSlash(relative)) {
			t.Errorf("%s:%d: %q is not a word for that; see the glossary in docs/architecture.md", relative, found.line, found.word)
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Errorf("read %d files: %v", files, err)
	}
}

// TestGlossaryFinds: a forbidden word is found in names, comments, texts and docs.
func TestGlossaryFinds(t *testing.T) {
	t.Parallel()
	words := forbiddenWords("| **revision** | a version | \"modern\", \"old way\"; not: \"x\" in code |\n| **call** | a \"quoted\" word | other |\n")
	if want := []string{"modern", "old way", "x"}; !slices.Equal(words, want) {
		t.Fatalf("got %q, want %q", words, want)
	}
	for _, row := range []struct {
		name, file, text string
		want             int // the line; 0: it is not found
	}{
		{"comment", "a.go", "package a\n\n// It is a modern one.\n", 3},
		{"comment of two lines", "a.go", "package a\n\n// It goes the old\n// way.\n", 3},
		{"name", "a.go", "package a\n\nfunc isModern() {}\n", 3},
		{"name of two words", "a.go", "package a\n\nvar oldWay int\n", 3},
		{"two names", "a.go", "package a\n\nvar old, way int\n", 0},
		{"text", "a.go", "package a\n\nvar s = \"a modern text\"\n", 3},
		{"part of a word", "a.go", "package a\n\n// postmodernism\n", 0},
		{"docs", "a.md", "# A\n\nThe old\nway.\n", 3},
		{"script", "a.js", "const isModern = 1;\n", 1},
	} {
		line := 0
		if found := forbiddenIn(proseOf(row.file)(row.text), words, row.file); len(found) > 0 {
			line = found[0].line
		}
		if line != row.want {
			t.Errorf("%s: found in line %d, want %d", row.name, line, row.want)
		}
	}
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// forbiddenWords returns the quoted words in the third column of a page's tables whose first
// column has a word in bold.
func forbiddenWords(page string) (words []string) {
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "**") {
			continue
		}
		for _, word := range quoted.FindAllStringSubmatch(cells[3], -1) {
			words = append(words, word[1])
		}
	}
	return words
}

type forbidden struct {
	word string
	line int
}

// forbiddenIn returns where a text has one of the words, except where it may.
func forbiddenIn(text string, words []string, path string) (found []forbidden) {
	lower := strings.ToLower(text)
	for _, word := range words {
		first, _, _ := strings.Cut(strings.ToLower(word), " ")
		if !strings.Contains(lower, first) {
			continue // quickly
		}
		if slices.ContainsFunc(notGlossary, func(n struct{ word, path, reason string }) bool {
			return (n.word == "" || n.word == word) && strings.HasPrefix(path, n.path)
		}) {
			continue
		}
		pattern := regexp.MustCompile(`(?i)\b` + strings.ReplaceAll(regexp.QuoteMeta(word), " ", `\s+`) + `s?\b`)
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			found = append(found, forbidden{word, 1 + strings.Count(text[:at[0]], "\n")})
		}
	}
	return found
}

// proseOf returns the function that reads what a file says, nil if it is not checked. The
// lines of the result are those of the file.
func proseOf(path string) func(text string) string {
	switch filepath.Ext(path) {
	case ".go":
		return goProse
	case ".md", ".js":
		return separateWords
	}
	return nil
}

// goProse returns the names, comments and texts of a Go file. Comments of several lines stay
// together, and names are apart from each other.
func goProse(source string) string {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, []byte(source), nil, scanner.ScanComments)
	var text strings.Builder
	line := 1
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return text.String()
		}
		for ; line < file.Line(at); line++ {
			text.WriteByte('\n')
		}
		switch kind {
		case token.COMMENT:
			text.WriteString(" " + separateWords(strings.TrimLeft(literal, "/*")))
		case token.IDENT, token.STRING:
			text.WriteString(" . " + separateWords(literal) + " . ")
		}
		if kind != token.SEMICOLON { // which has the line break that it stands for
			line += strings.Count(literal, "\n")
		}
	}
}

// separateWords writes isOldWay and is_old_way as is Old Way.
func separateWords(text string) string {
	var b strings.Builder
	var before rune
	for _, r := range text {
		switch {
		case r == '_':
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(before):
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}
