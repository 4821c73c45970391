package listing

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpx/internal/plain"
)

// sentenceBytes bounds the part of a tool's description in a line.
const sentenceBytes = 160

// proseBytes bounds the part of a description that is searched for its first sentence.
const proseBytes = 4096

// sentence returns the first sentence of a description, on one line. Headings, tags,
// labels such as "🎯 Purpose:" and the marks of markdown are no part of it. If the
// description has nothing else, it returns the first line.
func sentence(description string) string {
	text := strings.TrimSpace(description[:min(len(description), proseBytes)])
	first := firstParagraph(text)
	if first == "" {
		first, _, _ = strings.Cut(text, "\n")
	}
	first = strings.TrimSpace(first[:sentenceEnd(first)])
	return plain.Cut(plain.Line(strings.TrimRight(first, ".:。")), sentenceBytes)
}

// sentenceEnd returns where the first sentence of a text ends.
func sentenceEnd(text string) int {
	begun := false
	for i, r := range text {
		if begun && (r == '。' || strings.HasPrefix(text[i:], ". ") && !endsInAbbreviation(text[:i])) {
			return i
		}
		begun = begun || isWord(r)
	}
	return len(text)
}

// endsInAbbreviation reports whether a text ends in an abbreviation, so that a period
// after it does not end the sentence.
func endsInAbbreviation(text string) bool {
	abbreviations := []string{"e.g", "i.e", "etc", " vs", "approx"}
	return slices.ContainsFunc(abbreviations, func(a string) bool { return strings.HasSuffix(text, a) })
}

// firstParagraph returns the first lines of prose in a description, joined as far as
// they belong to one sentence.
func firstParagraph(description string) (text string) {
	description = withoutTags(strings.ReplaceAll(description, "\r", "\n"))
	fenced := false
	for line := range strings.SplitSeq(description, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			line = ""
		}
		prose := ""
		if !fenced {
			prose = proseOf(line)
		}
		switch {
		case text == "":
			text = prose
		case isUnderline(line): // the text was a heading
			text = ""
		case prose == "" || len(text) > sentenceBytes || sentenceEnd(text) < len(text) || !continues(text, line):
			return text
		default:
			text += " " + prose
		}
	}
	return text
}

// wrapColumn is the shortest line that may have been broken because it was full.
const wrapColumn = 60

// continues reports whether a line continues a sentence: it starts in lower case, or the
// text before it does not look complete.
func continues(text, line string) bool {
	first, _ := utf8.DecodeRuneInString(line)
	last, _ := utf8.DecodeLastRuneInString(text)
	switch {
	case strings.ContainsRune(".:!?。", last) || !isWord(first) && first != '(':
		return false
	case unicode.IsLower(first) || strings.ContainsRune(",;(/–—", last):
		return true
	}
	return len(text) >= wrapColumn
}

var (
	closingTag = regexp.MustCompile(`</([A-Za-z][\w:.-]*)>`)
	tagLine    = regexp.MustCompile(`(?m)^\s*</?[A-Za-z][\w:.-]*\s*/?>\s*$`)
)

// maxTags bounds the pairs of tags that are removed.
const maxTags = 16

// withoutTags removes pairs of tags, and tags that are alone on a line. Others may be
// placeholders, as in "<owner>/<repo>".
func withoutTags(text string) string {
	if !strings.Contains(text, "<") {
		return text
	}
	for _, pair := range closingTag.FindAllStringSubmatch(text, maxTags) {
		text = strings.NewReplacer("<"+pair[1]+">", "", pair[0], "").Replace(text)
	}
	return tagLine.ReplaceAllString(text, "")
}

var (
	listMark = regexp.MustCompile(`^(?:[-*•>]|\d+[.)])\s+`)
	bold     = regexp.MustCompile(`\*\*([^\s*][^*]*)\*\*`)
	code     = regexp.MustCompile("`([^`]+)`")
	linkText = regexp.MustCompile(`!?\[([^\]]+)\]\([^)\s]+\)`)
	label    = regexp.MustCompile(`^(\pL[\pL ]{0,30}?)\s*[:：]\s*`)
)

// proseOf returns the prose of a line, "" if it has none.
func proseOf(line string) string {
	if strings.HasPrefix(line, "#") && strings.HasPrefix(strings.TrimLeft(line, "#"), " ") || !hasWord(line) {
		return ""
	}
	marked := strings.TrimSpace(listMark.ReplaceAllString(line, ""))
	text := strings.TrimLeftFunc(marked, isEmoji)
	decorated := text != marked || strings.HasPrefix(text, "**")
	text = linkText.ReplaceAllString(text, "$1")
	text = bold.ReplaceAllString(text, "$1")
	text = code.ReplaceAllString(text, "$1")
	if name, rest := splitLabel(text); name != "" && (decorated || rest == "" || slices.Contains(plainLabels, name)) {
		text = rest
	}
	return strings.TrimSpace(text)
}

// plainLabels are labels that need no decoration to be recognized.
var plainLabels = []string{"purpose", "description", "summary", "overview", "tool description", "what it does"}

// warnings are labels that say something.
var warnings = []string{"deprecated", "warning", "experimental", "beta", "dangerous", "destructive"}

// splitLabel returns the label before a text in lower case, and the text after it. name
// is "" if there is no label, or one that says something.
func splitLabel(text string) (name, rest string) {
	found := label.FindStringSubmatch(text)
	if found == nil || len(strings.Fields(found[1])) > 3 {
		return "", text
	}
	if name = strings.ToLower(found[1]); slices.Contains(warnings, name) {
		return "", text
	}
	return name, text[len(found[0]):]
}

// hasWord reports whether a line has a letter or a digit.
func hasWord(line string) bool { return strings.ContainsFunc(line, isWord) }

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// isUnderline reports whether a line makes a heading of the line before it.
func isUnderline(line string) bool {
	return len(line) >= 3 && (strings.Trim(line, "=") == "" || strings.Trim(line, "-") == "")
}

// isEmoji reports whether a character is a symbol, a part of one, or a space.
func isEmoji(r rune) bool {
	const variation, joiner, keycap = 0xfe0f, 0x200d, 0x20e3
	return unicode.In(r, unicode.So, unicode.Sk) && r != '`' && r != '^' || r == variation || r == joiner || r == keycap || r == ' '
}
