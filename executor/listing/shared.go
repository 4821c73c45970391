package listing

import (
	"slices"
	"strings"

	"mcpx/internal/signature"
	"mcpx/registry/lists"
)

// A listing of fewer tools, or with shorter prefixes, saves nothing by showing them once.
const (
	leastTools  = 3
	leastPrefix = 12
)

// shared is what all lines of a listing have in common. It is shown once.
type shared struct {
	prefix     string   // of the sentences, which is left out
	parameters []string // optional ones, as a signature writes them
	names      []string // of these parameters
}

// sharedBy returns what the tools have in common.
func sharedBy(tools []*lists.Tool) (s shared) {
	if len(tools) < leastTools {
		return s
	}
	s.prefix = sharedPrefix(tools)
	common := tools[0].OptionalParameters()
	for _, t := range tools[1:] {
		if len(common) == 0 {
			return s
		}
		own := t.OptionalParameters()
		common = slices.DeleteFunc(common, func(p signature.Parameter) bool { return !slices.Contains(own, p) })
	}
	for _, p := range common {
		s.parameters, s.names = append(s.parameters, p.Text), append(s.names, p.Name)
	}
	return s
}

// sharedPrefix returns the words with which all sentences begin, if they are long and every
// sentence goes on.
func sharedPrefix(tools []*lists.Tool) string {
	prefix := sentence(tools[0].Description)
	for _, t := range tools[1:] {
		s := sentence(t.Description)
		n := 0
		for n < min(len(s), len(prefix)) && s[n] == prefix[n] {
			n++
		}
		if prefix = prefix[:n]; n < leastPrefix {
			return ""
		}
	}
	end := strings.LastIndexFunc(prefix, func(r rune) bool { return !isWord(r) })
	if prefix = prefix[:end+1]; len(prefix) < leastPrefix || strings.TrimSpace(prefix) == "" {
		return ""
	}
	for _, t := range tools {
		if strings.TrimSpace(strings.TrimPrefix(sentence(t.Description), prefix)) == "" {
			return ""
		}
	}
	return prefix
}

// line returns the line below the heading; "" if there is none.
func (s shared) line() string {
	if len(s.parameters) == 0 {
		return ""
	}
	return "all: " + strings.Join(s.parameters, ", ") + "\n"
}

// fullLine is FullLine without what is shared.
func (s shared) fullLine(t *lists.Tool) string {
	parameters := t.Signature()
	if len(s.names) > 0 {
		parameters = t.SignatureWithout(s.names)
	}
	return s.withSentence(nameLine(t)+"("+parameters+")", t)
}

// typedLine has the required parameters with their types.
func (s shared) typedLine(t *lists.Tool) string {
	return s.withSentence(nameLine(t)+"("+t.TypedWithout(s.names)+")", t)
}

func (s shared) withSentence(line string, t *lists.Tool) string {
	if text := strings.TrimPrefix(sentence(t.Description), s.prefix); text != "" {
		line += ": " + strings.TrimSpace(text)
	}
	return line
}
