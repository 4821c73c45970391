package executor

import (
	"errors"
	"strconv"

	"mcpx/executor/results"
	"mcpx/internal/rawjson"
)

// writtenReference is a reference as the arguments have it.
type writtenReference struct {
	text, query           string
	lines, match, replace rawjson.Node // zero if they are missing
}

// readReference reads an object whose members are $r and, perhaps, select, both strings, or
// those that take a part of a text.
func readReference(n rawjson.Node) (w writtenReference, ok bool) {
	if n.Kind() != '{' || n.Len() > maxReferenceKeys {
		return w, false
	}
	for key, value := range n.Members() {
		text, isString := value.String()
		switch {
		case key == referenceKey && isString:
			w.text, ok = text, true
		case key == "select" && isString:
			w.query = text
		case key == "lines":
			w.lines = value
		case key == "match":
			w.match = value
		case key == "replace":
			w.replace = value
		default:
			return w, false
		}
	}
	return w, ok
}

// maxReferenceKeys are the most members that a reference can have.
const maxReferenceKeys = 5

// part returns the part of a text that a reference takes, nil if it takes all of it.
func (w writtenReference) part() (*results.TextPart, error) {
	if w.lines.IsZero() && w.match.IsZero() && w.replace.IsZero() {
		return nil, nil
	}
	p := &results.TextPart{Lines: w.lines.Text()} // "5" and 5 mean the same
	var ok bool
	if p.Match, ok = w.match.String(); !ok && !w.match.IsZero() || ok && p.Match == "" {
		return nil, errors.New(`"match" is a pattern like "/regex/"`)
	}
	if !w.lines.IsZero() && p.Lines == "" {
		return nil, errors.New(`"lines" is a range like "5-9"`)
	}
	if !w.replace.IsZero() {
		p.Replace = replacement(w.replace)
	}
	return p, p.Check()
}

// replacement reads ["old", "new", N]. N is 1 if it is missing.
func replacement(n rawjson.Node) *results.Replace {
	r := &results.Replace{Count: 1}
	elements := n.Elements()
	if len(elements) < 2 || len(elements) > 3 {
		return &results.Replace{}
	}
	var isOld, isNew bool
	r.Old, isOld = elements[0].String()
	r.New, isNew = elements[1].String()
	if len(elements) == 3 {
		r.Count, _ = strconv.Atoi(elements[2].Text())
	}
	if !isOld || !isNew {
		return &results.Replace{}
	}
	return r
}
