package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Numbers are kept to a size at which exact arithmetic is cheap, and to the
// range of float64: beyond it the libraries panic.
const (
	maxDigits   = 400
	maxExponent = len("e-999")
)

var (
	errDeep   = errors.New("nested too deep")
	errMany   = errors.New("too many values")
	errNumber = errors.New("a number out of range")
)

// measure counts the values in v. It fails where v is deeper or larger than
// allowed, or holds what Decode does not produce.
func measure(v any, depth, limit int) (nodes int, err error) {
	if depth < 0 {
		return 0, errDeep
	}
	if limit < 1 {
		return 0, errMany
	}
	nodes = 1
	inside := func(child any) error {
		n, err := measure(child, depth-1, limit-nodes)
		nodes += n
		return err
	}
	switch v := v.(type) {
	case nil, bool, string:
	case json.Number:
		return nodes, checkNumber(v.String())
	case []any:
		for _, child := range v {
			if err := inside(child); err != nil {
				return nodes, err
			}
		}
	case map[string]any:
		for _, child := range v {
			if err := inside(child); err != nil {
				return nodes, err
			}
		}
	default:
		return nodes, fmt.Errorf("a %T", v)
	}
	return nodes, nil
}

func checkNumber(n string) error {
	_, err := strconv.ParseFloat(n, 64)
	exponent := strings.IndexAny(n, "eE")
	if err != nil || len(n) > maxDigits || exponent >= 0 && len(n)-exponent > maxExponent {
		return errNumber
	}
	return nil
}

// lookup finds the schema a reference names: by "#", a JSON Pointer or an anchor.
// Nothing outside of the document is looked for.
func (r *reducer) lookup(ref string) (schema any, isRoot bool, err error) {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local {
		return nil, false, fmt.Errorf("reference %s leads elsewhere", show(ref))
	}
	fragment, err = url.PathUnescape(fragment)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("reference %s is malformed", show(ref))
	case fragment == "":
		return r.document, true, nil
	case fragment[0] == '/':
		schema, err = r.follow(fragment)
	default:
		anchored, isRoot, ok := r.anchors().find(fragment)
		if ok {
			return anchored, isRoot, nil
		}
		err = errors.New("names no anchor, or one of several")
	}
	if err != nil {
		return nil, false, fmt.Errorf("reference %s %w", show(ref), err)
	}
	return schema, false, nil
}

// follow finds the schema that a JSON Pointer leads to.
func (r *reducer) follow(pointer string) (any, error) {
	target := r.document
	for i, token := range strings.Split(pointer, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch v := target.(type) {
		case map[string]any:
			if _, isResource := v[r.idKeyword()].(string); isResource && i > 0 {
				return nil, errors.New("leads through an inner " + r.idKeyword())
			}
			target = v[token]
		case []any:
			target = nil
			if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v) {
				target = v[i]
			}
		default:
			target = nil
		}
	}
	switch target.(type) {
	case bool, map[string]any:
		return target, nil
	}
	return nil, errors.New("leads nowhere")
}

// inPlaceLoops fails for references that come back to the same schema, or run
// on for long, without a step into the value: gojsonschema would overflow the
// stack, which nothing can recover.
func inPlaceLoops(root any) error {
	g := loopFinder{root: root, length: map[string]int{}}
	if g.follow("#"); g.err != nil {
		return g.err
	}
	object, _ := root.(map[string]any)
	defs, _ := object["$defs"].(map[string]any)
	for name := range defs {
		if g.follow(definitions + name); g.err != nil {
			return g.err
		}
	}
	return nil
}

type loopFinder struct {
	root   any
	length map[string]int // of the longest way on from a reference; -1 while open
	err    error
}

func (g *loopFinder) follow(ref string) int {
	n, met := g.length[ref]
	if met && n < 0 {
		g.err = errors.New("a reference loop")
	}
	if met || g.err != nil {
		return n
	}
	g.length[ref] = -1
	n = g.longest(target(g.root, ref))
	if n > maxSchemaDepth && g.err == nil {
		g.err = fmt.Errorf("more than %d references in a row", maxSchemaDepth)
	}
	g.length[ref] = n
	return n
}

// longest is the length of the longest way through schema in place.
func (g *loopFinder) longest(schema any) int {
	s, _ := schema.(map[string]any)
	most := 0
	for name, value := range s {
		k := keywords[name]
		if !k.inPlace {
			continue
		}
		for _, sub := range k.subschemas(value) {
			most = max(most, 1+g.longest(sub))
		}
		if k.shape == reference {
			most = max(most, 1+g.follow(value.(string)))
		}
	}
	return most
}

// subschemas are the schemas in a keyword's value.
func (k keyword) subschemas(value any) []any {
	switch k.shape {
	case oneSchema:
		return []any{value}
	case schemaList:
		return value.([]any)
	case schemaMap, dependentMap:
		return slices.Collect(maps.Values(value.(map[string]any)))
	}
	return nil
}

// target is the schema a reduced reference names.
func target(root any, ref string) any {
	if ref == "#" {
		return root
	}
	object, _ := root.(map[string]any)
	defs, _ := object["$defs"].(map[string]any)
	return defs[strings.TrimPrefix(ref, definitions)]
}
