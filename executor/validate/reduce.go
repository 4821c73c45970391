package validate

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reduced is a schema in which nothing is left but what is judged: known
// keywords with values of the right shape, and references to its own $defs.
type reduced struct {
	root     any // bool or map[string]any
	patterns map[string]*regexp.Regexp
	draft    int // 4, 6, 7 or modern
	plain    bool
}

const definitions = "#/$defs/"

var drafts = map[string]int{
	"json-schema.org/draft-04/schema": 4,
	"json-schema.org/draft-06/schema": 6,
	"json-schema.org/draft-07/schema": 7,
}

// reduce drops what cannot be judged. It may widen what a schema accepts,
// never narrow it.
func reduce(document any) (reduced, error) {
	r := newReducer(document)
	root := r.run()
	if r.err == nil && r.misjudged() {
		r = newReducer(document)
		r.suspicious = true
		root = r.run()
	}
	if r.err == nil && r.innerID && len(r.names) > 0 {
		r.err = errors.New("references next to an inner $id")
	}
	if r.err != nil {
		return reduced{}, r.err
	}
	if err := inPlaceLoops(root); err != nil {
		return reduced{}, err
	}
	return reduced{root, r.patterns, r.draft, !r.costly && r.nodes <= maxInlineNodes}, nil
}

type reducer struct {
	document any
	draft    int
	is2019   bool // the document declares 2019-09, which has no $dynamicAnchor
	anchored *anchors

	names map[string]string // reference as written → name in defs
	defs  map[string]any    // reduced targets of references
	weak  map[string]bool   // names whose target was widened
	open  map[string]bool   // names met while their target was not finished

	patterns     map[string]*regexp.Regexp // by their text in the reduced schema
	patternSteps int

	suspicious bool // take unfinished targets to be widened
	innerID    bool
	costly     bool
	nodes      int
	err        error // the first reason not to judge at all
}

func newReducer(document any) *reducer {
	r := &reducer{
		document: document,
		draft:    modern,
		names:    map[string]string{},
		defs:     map[string]any{},
		weak:     map[string]bool{},
		open:     map[string]bool{},
		patterns: map[string]*regexp.Regexp{},
	}
	if root, ok := document.(map[string]any); ok {
		dialect, _ := root["$schema"].(string)
		_, dialect, _ = strings.Cut(strings.TrimSuffix(dialect, "#"), "://")
		if draft, ok := drafts[dialect]; ok {
			r.draft = draft
		}
		r.is2019 = dialect == "json-schema.org/draft/2019-09/schema"
	}
	return r
}

func (r *reducer) run() any {
	switch r.document.(type) {
	case bool, map[string]any:
	default:
		r.fail("not a JSON Schema")
		return true
	}
	root, weak := r.schema(r.document, true)
	r.weak["#"] = weak
	if object, ok := root.(map[string]any); ok && len(r.defs) > 0 {
		object["$defs"] = r.defs
	}
	return root
}

// misjudged reports whether a target was widened after all that had been taken
// for exact while it was not finished.
func (r *reducer) misjudged() bool {
	for name := range r.open {
		if r.weak[name] {
			return true
		}
	}
	return false
}

func (r *reducer) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// schema reduces one schema. weak reports that it now accepts more.
func (r *reducer) schema(v any, isRoot bool) (out any, weak bool) {
	if r.nodes++; r.nodes > maxSchemaNodes {
		r.fail("more than %d schemas", maxSchemaNodes)
	}
	if r.err != nil {
		return true, true
	}
	if b, ok := v.(bool); ok {
		return b, false
	}
	in, ok := v.(map[string]any)
	if !ok {
		return true, true
	}
	r.refuse(in, isRoot)
	in = r.withoutDynamic(in)
	if in["format"] != nil {
		weak = true // an annotation here, an assertion elsewhere
	}
	reduced, widened := map[string]any{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		k, known := keywords[name]
		if !known || r.draft < k.since || r.hidden(in, name) {
			continue
		}
		value, ok, weakened := r.read(k.shape, in[name])
		if ok {
			reduced[name] = value
			r.costly = r.costly || k.costly
		}
		if !ok || weakened {
			widened[name] = true
		}
	}
	r.translate(in, reduced, widened)
	relax(in, reduced, widened)
	if in["nullable"] == true { // OpenAPI
		return map[string]any{"anyOf": []any{reduced, map[string]any{"type": []any{"null"}}}}, true
	}
	return reduced, weak || len(widened) > 0
}

// refuse gives the schema up for keywords that change what references mean.
func (r *reducer) refuse(in map[string]any, isRoot bool) {
	if _, ok := in["$recursiveRef"].(string); ok {
		r.fail("uses $recursiveRef")
	}
	if _, ok := in[r.idKeyword()].(string); ok && !isRoot {
		r.innerID = true
	}
}

// idKeyword is the keyword that makes a schema a resource of its own.
func (r *reducer) idKeyword() string {
	if r.draft == 4 {
		return "id"
	}
	return "$id"
}

// hidden reports that a keyword has no effect: up to draft 7 a $ref hides all
// others.
func (r *reducer) hidden(in map[string]any, name string) bool {
	_, isRef := in["$ref"].(string)
	return isRef && r.draft <= 7 && name != "$ref"
}

// read returns a keyword's value, reduced; ok is false where it is not what the
// keyword takes.
func (r *reducer) read(s shape, v any) (value any, ok, weak bool) {
	switch s {
	case oneSchema:
		_, isBool := v.(bool)
		_, isObject := v.(map[string]any)
		value, weak = r.schema(v, false)
		return value, isBool || isObject, weak
	case schemaList:
		return r.list(v)
	case schemaOrList:
		if _, ok := v.([]any); ok {
			return r.list(v)
		}
		return r.read(oneSchema, v)
	case schemaMap, patternMap, dependentMap, namesMap:
		return r.mapping(s, v)
	case reference:
		return r.reference(v)
	case typeNames:
		list := typeList(v)
		return list, len(list) > 0, false
	case names:
		items, ok := v.([]any)
		list := nameList(items)
		return list, ok, len(list) < len(items)
	case values:
		list := valueList(v)
		return list, len(list) > 0, false
	case literal:
		return v, true, false
	case pattern:
		text, _ := v.(string)
		re, ok := r.pattern(text)
		return re, ok, false
	case number:
		return v, rational(v) != nil, false
	case positive:
		n := rational(v)
		return v, n != nil && n.Sign() > 0, false
	case count:
		_, ok := whole(v)
		return v, ok, false
	default: // boolean
		_, ok := v.(bool)
		return v, ok, false
	}
}

func (r *reducer) list(v any) (value any, ok, weak bool) {
	items, _ := v.([]any)
	var out []any
	for _, item := range items {
		schema, weakened := r.schema(item, false)
		out = append(out, schema)
		weak = weak || weakened
	}
	return out, len(out) > 0, weak
}

func (r *reducer) mapping(s shape, v any) (value any, ok, weak bool) {
	in, ok := v.(map[string]any)
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		name := key
		if s == patternMap {
			re, ok := r.pattern(key)
			if !ok {
				weak = true
				continue
			}
			name = re
		}
		items, isList := in[key].([]any)
		if isList && (s == dependentMap || s == namesMap) {
			out[name] = nameList(items)
			continue
		}
		if s == namesMap {
			weak = true
			continue
		}
		schema, weakened := r.schema(in[key], false)
		out[name] = schema
		weak = weak || weakened
	}
	return out, ok, weak
}

// reference makes the target of a $ref one of the definitions, wherever in the
// document it stands.
func (r *reducer) reference(v any) (value any, ok, weak bool) {
	ref, ok := v.(string)
	if !ok {
		return nil, false, true
	}
	name, met := r.names[ref]
	if !met {
		target, isRoot, err := r.lookup(ref)
		if err != nil {
			r.fail("%w", err)
			return nil, false, true
		}
		name = definitions + strconv.Itoa(len(r.names))
		if isRoot {
			name = "#"
		}
		r.names[ref] = name
		if !isRoot {
			schema, weakened := r.schema(target, false)
			r.defs[strings.TrimPrefix(name, definitions)] = schema
			r.weak[name] = weakened
		}
	}
	weak, finished := r.weak[name]
	if !finished {
		r.open[name] = true
		weak = r.suspicious
	}
	return name, true, weak
}
