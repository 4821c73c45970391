package schema

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/rawjson"
)

// References returns every $ref and $dynamicRef in the schema, also in data. They
// all start at the root unless part of the schema has an $id of its own: then ok
// is false.
func (s *Schema) References() (list []string, ok bool) {
	root, err := s.Root()
	if err != nil {
		return nil, true
	}
	ok = true
	for key, value := range root.Tree().Members() {
		switch key {
		case "$ref", "$dynamicRef":
			if text, isText := value.String(); isText {
				list = append(list, text)
			}
		case "$id":
			id, isText := value.String()
			ok = ok && (!isText || strings.HasPrefix(id, "#") || value == root.Get("$id"))
		}
	}
	return list, ok
}

// content says what the value of a keyword holds.
type content int

const (
	data         content = iota
	oneOrMany            // a schema, or a list of schemas
	schemasByKey         // an object whose members are schemas
)

// contents has the keywords that hold schemas, of all drafts.
var contents = map[string]content{
	"allOf": oneOrMany, "anyOf": oneOrMany, "oneOf": oneOrMany, "not": oneOrMany,
	"if": oneOrMany, "then": oneOrMany, "else": oneOrMany,
	"items": oneOrMany, "additionalItems": oneOrMany, "prefixItems": oneOrMany, "unevaluatedItems": oneOrMany, "contains": oneOrMany,
	"additionalProperties": oneOrMany, "unevaluatedProperties": oneOrMany, "propertyNames": oneOrMany,
	"properties": schemasByKey, "patternProperties": schemasByKey, "dependencies": schemasByKey, "dependentSchemas": schemasByKey,
	"$defs": schemasByKey, "definitions": schemasByKey,
}

// collectAnchors adds the anchors in a value, and in all values below it.
func (s *Schema) collectAnchors(n rawjson.Node, holds content) {
	for _, element := range n.Elements() {
		below := data
		if holds == oneOrMany && element.Kind() == '{' {
			below = oneOrMany
		}
		s.collectAnchors(element, below)
	}
	if _, hasID := n.Get("$id").String(); hasID && n != s.root {
		holds = data // of another resource
	}
	for key, value := range n.Members() {
		if name, ok := value.String(); ok && (key == "$anchor" && s.draft >= Draft2019 || key == "$dynamicAnchor" && s.draft >= Draft2020) {
			_, again := s.anchors[name]
			s.anchors[name] = rawjson.Node{}
			if holds == oneOrMany && !again {
				s.anchors[name] = n
			}
		}
		below := data
		switch holds {
		case oneOrMany:
			below = contents[key]
		case schemasByKey:
			below = oneOrMany
		}
		s.collectAnchors(value, below)
	}
}

// Reasons why a reference cannot be resolved.
var (
	errElsewhere = errors.New("leads elsewhere")
	errMalformed = errors.New("is malformed")
	errNowhere   = errors.New("leads nowhere")
	errAnchor    = errors.New("names no anchor, or one of several")
)

// anchorName is the form of an anchor that every implementation accepts.
var anchorName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9._-]*$`)

// Resolve returns the schema that a reference names: by "#", a JSON Pointer or an
// anchor. An anchor must be defined once in the whole schema, even in data, and by
// a schema that belongs to the same resource as the root.
func (s *Schema) Resolve(reference string) (rawjson.Node, error) {
	fragment, local := strings.CutPrefix(reference, "#")
	if !local {
		return rawjson.Node{}, errElsewhere
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return rawjson.Node{}, errMalformed
	}
	root, _ := s.Root()
	switch {
	case fragment == "":
		return root, nil
	case fragment[0] == '/':
		return s.follow(fragment)
	}
	s.scan.Do(func() {
		s.anchors = map[string]rawjson.Node{}
		s.collectAnchors(root, oneOrMany)
	})
	found := s.anchors[fragment]
	if found.IsZero() || !anchorName.MatchString(fragment) {
		return rawjson.Node{}, errAnchor
	}
	return found, nil
}

// maxIndex limits how far into an array a reference may lead, which takes time.
const maxIndex = 1000

// follow returns the schema that a JSON Pointer leads to.
func (s *Schema) follow(pointer string) (rawjson.Node, error) {
	at, _ := s.Root()
	for i, token := range rawjson.Tokens(pointer) {
		if _, isResource := at.Get(s.IDKeyword()).String(); isResource && i > 0 {
			return rawjson.Node{}, errors.New("leads through an inner " + s.IDKeyword())
		}
		if index, _ := strconv.Atoi(token); at.Kind() == '[' && index > maxIndex {
			return rawjson.Node{}, errNowhere
		}
		at = at.Child(token)
	}
	switch at.Kind() {
	case '{', 't', 'f':
		return at, nil
	}
	return rawjson.Node{}, errNowhere
}

// maxAlternatives bounds the work of Alternatives: with that number of schemas, it follows no
// more references.
const maxAlternatives = 1000

// Alternatives returns schemas together with those that they refer to or combine.
func (s *Schema) Alternatives(schemas ...rawjson.Node) []rawjson.Node {
	for i := 0; i < len(schemas) && len(schemas) < maxAlternatives; i++ {
		n := schemas[i]
		for _, keyword := range []string{"$ref", "$dynamicRef"} {
			reference, _ := n.Get(keyword).String()
			if target, err := s.Resolve(reference); err == nil && !slices.Contains(schemas, target) {
				schemas = append(schemas, target)
			}
		}
		for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
			schemas = append(schemas, n.Get(keyword).Elements()...)
		}
	}
	return schemas
}

// IDKeyword returns the keyword that makes a schema a resource of its own.
func (s *Schema) IDKeyword() string {
	if s.Draft() == Draft4 {
		return "id"
	}
	return "$id"
}
