package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"mcpx/executor/listing"
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
	input *schema.Schema
	found []*pendingReference
}

// pendingReference is a reference in the arguments.
type pendingReference struct {
	results.Reference
	path []string
}

// document is JSON with references: the arguments, or a string in them that is JSON.
type document struct {
	text   []byte
	places []place
}

// place is a value that is replaced: a reference, or a string that has references.
type place struct {
	node      rawjson.Node
	reference *pendingReference // nil for a string
	inner     *document
}

// resolve replaces the references in the arguments. It returns an error for a reference that
// leads nowhere. It waits until there is room for the work.
func (r *resolver) resolve(ctx context.Context, s *results.Table, client string, arguments []byte) ([]byte, error) {
	d, err := r.read(arguments, nil)
	if err != nil || len(r.found) == 0 {
		return arguments, err
	}
	var all []*results.Reference
	for _, ref := range r.found {
		all = append(all, &ref.Reference)
	}
	failed, err := s.Resolve(ctx, client, all, maxReferenceBytes)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if errors.Is(err, results.ErrLong) {
		err = fmt.Errorf("the references of a call may have %d MiB at most", maxReferenceBytes>>20)
	}
	if err != nil {
		return nil, r.found[slices.Index(all, failed)].problem(err)
	}
	for _, ref := range r.found {
		ref.unwrap(r.input)
	}
	return d.replaced(), nil
}

// unwrap replaces a selection of one scalar by that scalar, where the schema wants one.
func (ref *pendingReference) unwrap(input *schema.Schema) {
	if ref.Select == nil || rawjson.Kind(ref.Value) != '[' {
		return
	}
	var types []string
	for _, s := range schemasAt(input, ref.path) {
		types = append(types, schema.Types(s.Get("type"))...)
	}
	if len(types) == 0 || slices.Contains(types, "array") || len(types) == 1 && types[0] == "object" {
		return
	}
	var only []byte
	count := 0
	for only = range rawjson.Elements(ref.Value) {
		if count++; count > 1 {
			return
		}
	}
	if kind := rawjson.Kind(only); count == 1 && kind != '{' && kind != '[' {
		ref.Value = only
	}
}

// problem returns the error for a reference.
func (ref *pendingReference) problem(err error) error {
	return &badCall{validate.Problem{Path: ref.path, Text: fmt.Sprintf("reference %s: %v", listing.Quoted(ref.Text), err)}.String()}
}

// replaced returns the document with the values of its references.
func (d *document) replaced() []byte {
	var edits []rawjson.Edit
	for _, p := range d.places {
		if p.reference != nil {
			edits = append(edits, p.node.Replace(p.reference.Value))
		} else {
			edits = append(edits, p.node.Replace(p.inner.replaced()))
		}
	}
	return rawjson.Splice(d.text, edits)
}

// read finds the references in the value at a path.
func (r *resolver) read(value []byte, path []string) (*document, error) {
	d := &document{text: value}
	if !isSound(value) {
		return d, nil // the check of the arguments explains that
	}
	root, err := rawjson.Parse(value)
	if err != nil {
		return d, err
	}
	return d, r.visit(d, root, path)
}

// isSound reports whether a value is JSON in which no key is given twice.
func isSound(value []byte) bool {
	return rawjson.Check(value) == nil && rawjson.DuplicateKey(value) == nil
}

// visit finds the references in a value of a document.
func (r *resolver) visit(d *document, n rawjson.Node, path []string) error {
	if written, ok := readReference(n); ok && !declares(r.input, path) {
		ref, err := r.add(written, path)
		d.places = append(d.places, place{node: n, reference: ref})
		return err
	}
	if n.Kind() == '"' {
		return r.visitString(d, n, path)
	}
	for key, member := range n.Members() {
		if err := r.visit(d, member, append(slices.Clip(path), key)); err != nil {
			return err
		}
	}
	for i, element := range n.Elements() {
		if err := r.visit(d, element, append(slices.Clip(path), strconv.Itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

// visitString finds the references in an object or array that is given as its JSON
// string, where the schema does not allow a string. Values of references are not read for
// references again: a server could name results of another one.
func (r *resolver) visitString(d *document, n rawjson.Node, path []string) error {
	if !mayHaveReference(n.Raw()) {
		return nil
	}
	text, ok := parseString(n.Raw(), typesAt(r.input, path))
	if !ok {
		return nil
	}
	inner, err := r.read(text, path)
	if err == nil && len(inner.places) > 0 {
		d.places = append(d.places, place{node: n, inner: inner})
	}
	return err
}

// add adds a reference.
func (r *resolver) add(w writtenReference, path []string) (*pendingReference, error) {
	ref := &pendingReference{results.Reference{Text: w.text}, path}
	if r.found = append(r.found, ref); len(r.found) > maxReferences {
		return nil, ref.problem(fmt.Errorf("a call may have %d references at most", maxReferences))
	}
	var err error
	if ref.Part, err = w.part(); err != nil {
		return nil, ref.problem(err)
	}
	if w.query == "" {
		return ref, nil
	}
	if ref.Select, err = selection.Parse(w.query); err != nil {
		return nil, ref.problem(err)
	}
	switch {
	case ref.Part != nil:
		return nil, ref.problem(errors.New("select cannot be combined with lines, match and replace"))
	case ref.Select.Pattern != "": // the lines that match
		ref.Part, ref.Select = &results.TextPart{Match: "/" + ref.Select.Pattern + "/"}, nil
	}
	return ref, nil
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
