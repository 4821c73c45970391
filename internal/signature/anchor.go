package signature

import (
	"strconv"
	"strings"
)

// anchor is a schema that has a plain name.
type anchor struct {
	schema  *node  // nil if several have the name
	pointer string // the reference that leads there by its place
}

// anchored returns the schema that an $anchor or $dynamicAnchor names; nil if there is none, or more than one.
func (b *builder) anchored(name string) *node {
	if b.refAlone {
		return nil
	}
	if b.anchors == nil {
		b.anchors = map[string]*anchor{}
		b.findAnchors(b.root, "#")
	}
	if a := b.anchors[name]; a != nil {
		return a.schema
	}
	return nil
}

// findAnchors looks for anchors in n and below, as deep as schemas are read.
func (b *builder) findAnchors(n *node, pointer string) {
	if b.depth == maxDepth {
		return
	}
	b.depth++
	defer func() { b.depth-- }()
	keys := []string{"$anchor", "$dynamicAnchor"}
	if !b.dynamic {
		keys = keys[:1]
	}
	for _, key := range keys {
		name, ok := n.get(key).str()
		if !ok {
			continue
		}
		if a := b.anchors[name]; a != nil {
			a.schema = nil
			continue
		}
		b.anchors[name] = &anchor{n, pointer}
	}
	for i, m := range n.members {
		token := strings.ReplaceAll(strings.ReplaceAll(m.key, "~", "~0"), "/", "~1")
		if n.isArray() {
			token = strconv.Itoa(i)
		}
		b.findAnchors(m.value, pointer+"/"+token)
	}
}
