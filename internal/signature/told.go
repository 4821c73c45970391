package signature

import (
	"regexp"
	"strings"

	"mcpx/internal/rawjson"
)

// Limits in bytes.
const (
	maxToldFrom = 1000 // of a description: the rest is not read
	maxTold     = 100  // of a comment with values; longer ones are left out
	maxValue    = 32   // of one value
)

// told adds to the type of a plain string what only its description says: its legal values, or its format. The forms are
// strict, so that an example or an open list is never taken for all values. It stays a comment: descriptions may be wrong.
func told(t *typ, n rawjson.Node) *typ {
	at := -1
	for i, m := range members(t) {
		switch {
		case m.kind == word && m.text == "string" && m.note == "" && at < 0:
			at = i
		case m != null:
			return t
		}
	}
	if at < 0 {
		return t
	}
	description, _ := n.Get("description").String()
	note := toldBy(description[:min(len(description), maxToldFrom)])
	if note == "" {
		return t
	}
	text := &typ{text: "string", note: note}
	if t.kind != union {
		return text
	}
	return unionOf([]*typ{text, null})
}

// toldBy returns the values or the format that a description names.
func toldBy(description string) string {
	for _, at := range valuesIntro.FindAllStringIndex(description, 8) {
		intro, list := strings.ToLower(description[at[0]:at[1]]), description[at[1]:]
		values := quotedList(list)
		if len(values) == 0 && (strings.HasPrefix(intro, "one of") || strings.Contains(intro, "values")) {
			values = bareList(list)
		}
		if note := strings.Join(values, " | "); len(values) > 1 && len(note) <= maxTold {
			return note
		}
	}
	for _, f := range toldFormats {
		if f.pattern.MatchString(description) {
			return f.note
		}
	}
	return ""
}

// valuesIntro is what comes before a list of all values.
var valuesIntro = regexp.MustCompile(`(?i)\b(?:one of(?: the following)?(?: values)?|either|can be|must be|(?:valid|allowed|possible|supported) values(?: are)?)\b:?\s*`)

var toldFormats = []struct {
	pattern *regexp.Regexp
	note    string
}{
	{regexp.MustCompile(`\bISO[ -]?8601\b`), "ISO 8601"},
	{regexp.MustCompile(`\bYYYY-MM-DD\b(?:$|[^T\w])`), "YYYY-MM-DD"},
	{regexp.MustCompile(`(?i)\b(?:URL|URI|percent)[ -]encoded\b`), "URL-encoded"},
}

var (
	quotedValue = regexp.MustCompile("^(?:'([^'\\s]+)'|\"([^\"\\s]+)\"|`([^`\\s]+)`)")
	bareValue   = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*`)
	valueJoint  = regexp.MustCompile(`^(?:\s*,\s*(?:(?i:or|and)\s+)?|\s+(?i:or|and)\s+|\s*[|/]\s*)`)
	openEnd     = regexp.MustCompile(`^(?:\s*,?\s*(?i:or|etc|and (?:more|others|so on))\b|\s*,?\s*(?:…|\.\.\.)|\s*[|/])`)
	listEnd     = regexp.MustCompile(`^(?:$|\.(?:$|\s)|[);\]\n])`)
)

// quotedList returns the quoted values at the start of a text, none if others may follow.
func quotedList(text string) []string {
	values, rest := valueList(text, quotedValue)
	if openEnd.MatchString(rest) {
		return nil
	}
	return values
}

// bareList returns the words at the start of a text that are joined by commas or "or", none if the sentence goes on.
func bareList(text string) []string {
	values, rest := valueList(text, bareValue)
	if len(values) == 0 {
		return nil
	}
	last := values[len(values)-1]
	values[len(values)-1] = strings.TrimRight(last, ".") // it ends the sentence
	if rest = last[len(values[len(values)-1]):] + rest; !listEnd.MatchString(rest) {
		return nil
	}
	return values
}

// valueList returns the values at the start of a text and what follows them, none if one is long or cannot be in a comment.
func valueList(text string, value *regexp.Regexp) (values []string, rest string) {
	for {
		found := value.FindStringSubmatch(text)
		if found == nil {
			return values, text
		}
		v := strings.Join(found[min(1, len(found)-1):], "")
		if len(v) > maxValue || escape(v) != v || strings.Contains(v, "*/") {
			return nil, text
		}
		values, text = append(values, v), text[len(found[0]):]
		joint := valueJoint.FindString(text)
		if joint == "" || !value.MatchString(text[len(joint):]) {
			return values, text
		}
		text = text[len(joint):]
	}
}
