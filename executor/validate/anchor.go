package validate

import (
	"maps"
	"regexp"
	"slices"
)

// anchors are what the plain names in the references of a document stand for.
type anchors struct {
	root    map[string]any
	dynamic bool // $dynamicAnchor is an anchor too

	mentions map[string]int            // objects that define a name, in schemas or in data
	schemas  map[string]map[string]any // schemas of the document itself that define a name
	innerIDs int                       // objects below the root with an $id
}

// anchorName is the form of an $anchor that every implementation takes.
var anchorName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9._-]*$`)

func newAnchors(document any, dynamic bool) *anchors {
	root, _ := document.(map[string]any)
	a := &anchors{root: root, dynamic: dynamic, mentions: map[string]int{}, schemas: map[string]map[string]any{}}
	a.count(document)
	if hasID(root) {
		a.innerIDs--
	}
	a.collect(root)
	return a
}

// find returns the schema that a name stands for. ok is false unless the name is
// defined once in the whole document, even in data, and in a schema of the document
// itself: one below an inner $id belongs to another resource.
func (a *anchors) find(name string) (schema map[string]any, isRoot, ok bool) {
	schema, ok = a.schemas[name]
	if !ok || a.mentions[name] != 1 || !anchorName.MatchString(name) {
		return nil, false, false
	}
	return schema, slices.Contains(a.names(a.root), name), true
}

// names are the anchors that an object defines, if it is a schema.
func (a *anchors) names(object map[string]any) (names []string) {
	if name, ok := object["$anchor"].(string); ok {
		names = append(names, name)
	}
	if name, ok := object["$dynamicAnchor"].(string); ok && a.dynamic {
		names = append(names, name)
	}
	return names
}

// count looks at every object in v.
func (a *anchors) count(v any) {
	switch v := v.(type) {
	case []any:
		for _, child := range v {
			a.count(child)
		}
	case map[string]any:
		if hasID(v) {
			a.innerIDs++
		}
		for _, name := range a.names(v) {
			a.mentions[name]++
		}
		for _, child := range v {
			a.count(child)
		}
	}
}

// collect looks at a schema and all below it that belong to the same resource.
func (a *anchors) collect(schema map[string]any) {
	for _, name := range a.names(schema) {
		a.schemas[name] = schema
	}
	for _, sub := range subschemas(schema) {
		if !hasID(sub) {
			a.collect(sub)
		}
	}
}

func hasID(object map[string]any) bool {
	_, ok := object["$id"].(string)
	return ok
}

// subschemas are the schemas directly below s that are objects, at every keyword
// that is known to hold schemas.
func subschemas(s map[string]any) (subs []map[string]any) {
	for name, value := range s {
		k, known := keywords[name]
		if name == "$defs" || name == "definitions" {
			k, known = keyword{shape: schemaMap}, true
		}
		if !known {
			continue
		}
		var found []any
		switch k.shape {
		case oneSchema, schemaList, schemaOrList:
			list, isList := value.([]any)
			if found = list; !isList {
				found = []any{value}
			}
		case schemaMap, patternMap, dependentMap:
			object, _ := value.(map[string]any)
			found = slices.Collect(maps.Values(object))
		}
		for _, v := range found {
			if sub, ok := v.(map[string]any); ok {
				subs = append(subs, sub)
			}
		}
	}
	return subs
}

// anchors returns the anchors of the document. Before 2019-09 there are none.
func (r *reducer) anchors() *anchors {
	if r.anchored == nil {
		r.anchored = &anchors{}
		if r.draft > 7 {
			r.anchored = newAnchors(r.document, !r.is2019)
		}
	}
	return r.anchored
}

// withoutDynamic returns a schema with its $dynamicRef as a $ref. In a document
// that is one resource both lead to the same schema. Elsewhere the document is
// given up.
func (r *reducer) withoutDynamic(in map[string]any) map[string]any {
	dynamic, ok := in["$dynamicRef"].(string)
	if !ok {
		return in
	}
	if _, both := in["$ref"]; both || !r.anchors().dynamic || r.anchors().innerIDs > 0 {
		r.fail("uses $dynamicRef")
		return in
	}
	out := maps.Clone(in)
	out["$ref"] = dynamic
	return out
}
