package listing

import (
	"strings"
	"testing"
	"unicode/utf8"

	"mcpx/internal/plain"
)

func TestSentence(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"  \n ":                           "",
		"One":                             "One",
		"One.":                            "One",
		"One. Two.":                       "One",
		"  One. Two.":                     "One",
		"\n\nOne\nTwo.":                   "One",
		"One\r\nTwo":                      "One",
		"Version 1.2 of it. Two":          "Version 1.2 of it",
		"Reads files, e.g. a.txt. Two":    "Reads files, e.g. a.txt",
		"All of it, i.e. everything. Two": "All of it, i.e. everything",
		"Files, etc. are read. Two":       "Files, etc. are read",
		"This vs. that. Two":              "This vs. that",
		"Takes approx. a second. Two":     "Takes approx. a second",
		"Tab\there \x1b[31m\u202e. Two":   `Tab here \u001b[31m\u202e`,
		"One line of a sentence,\nand the other. Two":                                       "One line of a sentence, and the other",
		"Reads the\n    whole file.\n":                                                      "Reads the whole file",
		"List issues\nReturns a list":                                                       "List issues",
		"Manages every account that this organization has ever created in\nSalesforce. Two": "Manages every account that this organization has ever created in Salesforce",
		"🎯 Purpose:\nRead a file. Two":                                                      "Read a file",
		"🎯 Purpose: Read a file. Two":                                                       "Read a file",
		"👩‍💻 **What it does**: reads":                                                       "reads",
		"**Purpose:** Read a file.\n\n**When:**\n":                                          "Read a file",
		"Purpose: Read a file":                                                              "Read a file",
		"<Purpose>\nRead a file.\n</Purpose>":                                               "Read a file",
		"<Purpose>Read a file. Two</Purpose>":                                               "Read a file",
		"Reads <owner>/<repo>. Two":                                                         "Reads <owner>/<repo>",
		"<owner>/<repo> is read. Two":                                                       "<owner>/<repo> is read",
		"# Title\n\nRead a file":                                                            "Read a file",
		"Title\n=====\nRead a file":                                                         "Read a file",
		"---\n\n- Read **a** [file](https://x.y)":                                           "Read a file",
		"```\ncode\n```\nRead a `file`":                                                     "Read a file",
		"Files like '**/*.go'. Two":                                                         "Files like '**/*.go'",
		"⚠️ DEPRECATED: use other. Two":                                                     "DEPRECATED: use other",
		"Twilio - Api: The API. Two":                                                        "Twilio - Api: The API",
		"Use this tool to:\n- read\n- write":                                                "Use this tool to",
		"Args:\n  path: Where":                                                              "path: Where",
		"Purpose:":                                                                          "Purpose",
		"# Title":                                                                           "# Title",
		"读取文件。支持目录。":                                                                        "读取文件",
		strings.Repeat("x", 160):                                                            strings.Repeat("x", 160),
		strings.Repeat("x", 161):                                                            strings.Repeat("x", 157) + "…",
		strings.Repeat("é", 100):                                                            strings.Repeat("é", 78) + "…",
		strings.Repeat("x", 100) + ". " + "Two":                                             strings.Repeat("x", 100),
	} {
		if got := sentence(in); got != want {
			t.Errorf("sentence(%q) = %q, want %q", in, got, want)
		}
	}
}

// A sentence is one short line of printable text, and there is one if the description
// has printable text.
func FuzzSentence(f *testing.F) {
	for _, text := range []string{"One. Two", "🎯 Purpose:\nRead", "<A>\nRead</A>", "# T\n```\nx", "**a:** b", "a\x80\u202e。", "1. \n- "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, description string) {
		got := sentence(description)
		if len(got) > sentenceBytes || got != plain.Line(got) || !utf8.ValidString(got) {
			t.Errorf("sentence(%q) = %q", description, got)
		}
		if got == "" && hasWord(description[:min(len(description), proseBytes)]) {
			t.Errorf("sentence(%q) is empty", description)
		}
	})
}
