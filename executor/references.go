package executor

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"mcpx/executor/results"
	"mcpx/executor/validate"
	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
	"mcpx/internal/selection"
)

// Limits of the references in one call.
const (
	maxReferences     = 64
	maxReferenceBytes = 8 << 20 // that they are replaced by
	referenceKey      = "$r"
)

// mayHaveReference reports whether arguments may have a reference, at a glance.
func mayHaveReference(arguments []byte) bool {
	return bytes.Contains(arguments, []byte(`$r"`)) || bytes.Contains(arguments, []byte(`$r\"`)) ||
		bytes.Contains(arguments, []byte(`\u0024`)) || bytes.Contains(arguments, []byte(`\u0072`)) // "$r" with escapes
}

// resolver replaces each reference in the arguments of one call by the part of a kept
// result that it names, so that data reaches a tool without passing through the model.
type resolver struct {
	values *results.Values
	input  *schema.Schema
	found  []rawjson.Edit
	count  int // references
	bytes  int // of their values
}

// resolve replaces the references in the value at a path. It returns an error for a
// reference that leads nowhere.
func (r *resolver) resolve(value []byte, path []string) ([]byte, error) {
	if !isSound(value) {
		return value, nil // the check of the arguments explains that
	}
	root, err := rawjson.Parse(value)
	if err != nil {
		return nil, err
	}
	if err := r.visit(root, path); err != nil {
		return nil, err
	}
	return rawjson.Splice(value, r.found), nil
}

// isSound reports whether a value is JSON in which no key is given twice.
func isSound(value []byte) bool {
	return rawjson.Check(value) == nil && rawjson.DuplicateKey(value) == nil
}

// visit resolves the references in a value.
func (r *resolver) visit(n rawjson.Node, path []string) error {
	reference, query, ok := readReference(n)
	if ok && !declares(r.input, path) {
		value, err := r.value(reference, query)
		if err != nil {
			return &badCall{validate.Problem{Path: path, Text: fmt.Sprintf("reference %s: %v", quoted(reference), err)}.String()}
		}
		r.found = append(r.found, n.Replace(value))
		return nil
	}
	if n.Kind() == '"' {
		return r.visitString(n, path)
	}
	for key, member := range n.Members() {
		if err := r.visit(member, append(slices.Clip(path), key)); err != nil {
			return err
		}
	}
	for i, element := range n.Elements() {
		if err := r.visit(element, append(slices.Clip(path), strconv.Itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

// visitString resolves the references in an object or array that is given as its JSON
// string, where the schema does not allow a string. Values of references are not read for
// references again: a server could name results of another one.
func (r *resolver) visitString(n rawjson.Node, path []string) error {
	if !mayHaveReference(n.Raw()) {
		return nil
	}
	inner, ok := parseString(n.Raw(), typesAt(r.input, path))
	if !ok {
		return nil
	}
	outer := r.found
	r.found = nil
	value, err := r.resolve(inner, path)
	if r.found = outer; err != nil || bytes.Equal(value, inner) {
		return err
	}
	r.found = append(r.found, n.Replace(value))
	return nil
}

// readReference reads an object whose only members are $r and, perhaps, select, both
// strings.
func readReference(n rawjson.Node) (reference, query string, ok bool) {
	if n.Kind() != '{' || n.Len() > 2 {
		return "", "", false
	}
	for key, value := range n.Members() {
		text, isString := value.String()
		switch {
		case !isString:
			return "", "", false
		case key == referenceKey:
			reference, ok = text, true
		case key == "select":
			query = text
		default:
			return "", "", false
		}
	}
	return reference, query, ok
}

// value returns the value of a reference.
func (r *resolver) value(reference, query string) ([]byte, error) {
	if r.count++; r.count > maxReferences {
		return nil, fmt.Errorf("a call may have %d references at most", maxReferences)
	}
	var q *selection.Query
	if query != "" {
		var err error
		if q, err = selection.Parse(query); err != nil {
			return nil, err
		}
		if q.Pattern != "" {
			return nil, errors.New("a reference cannot have a pattern; select fields")
		}
	}
	value, err := r.values.Get(reference, q)
	if err != nil {
		return nil, err
	}
	if r.bytes += len(value); r.bytes > maxReferenceBytes {
		return nil, fmt.Errorf("the references of a call may have %d MiB at most", maxReferenceBytes>>20)
	}
	return value, nil
}

// declares reports whether a schema declares a property $r for the object at a path, which
// is then no reference.
func declares(s *schema.Schema, path []string) bool {
	return slices.ContainsFunc(schemasAt(s, path), func(p rawjson.Node) bool { return !p.Get("properties").Get(referenceKey).IsZero() })
}

// typesAt returns the types that a schema allows for the value at a path, nil if it may be
// a string.
func typesAt(s *schema.Schema, path []string) (types []string) {
	for _, p := range schemasAt(s, path) {
		types = append(types, schema.Types(p.Get("type"))...)
	}
	if slices.Contains(types, "string") {
		return nil
	}
	return types
}

// schemasAt returns the schemas that may apply to the value at a path.
func schemasAt(s *schema.Schema, path []string) []rawjson.Node {
	root, _ := s.Root() // zero if the schema cannot be read
	places := s.Alternatives(root)
	for _, step := range path {
		var next []rawjson.Node
		for _, p := range places {
			for _, n := range below(p, step) {
				if !n.IsZero() && !slices.Contains(next, n) { // or each level could double them
					next = append(next, n)
				}
			}
		}
		places = s.Alternatives(next...)
	}
	return places
}

// below returns the schemas of a member or an element.
func below(p rawjson.Node, step string) []rawjson.Node {
	if member := p.Get("properties").Get(step); !member.IsZero() {
		return []rawjson.Node{member}
	}
	first, others := schema.Items(p)
	if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(first) {
		return first[i : i+1]
	}
	return []rawjson.Node{others, p.Get("additionalProperties")}
}
