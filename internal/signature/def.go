package signature

import (
	"slices"
	"strconv"
	"strings"
)

// def is the target of references.
type def struct {
	pointer string // where it is
	uses    int    // references to it, and its own place
	built   bool
	inline  bool   // was written at its only use
	typ     *typ   // nil while it is being built: a recursion finds it so
	short   bool   // is written out at every use
	name    string // given when first needed
	part    *part  // nil if the name needs no explanation
}

// isShort reports whether writing a definition out everywhere takes no more room than naming it. An object is always named.
func (d *def) isShort() bool {
	if !isFlat(d.typ) {
		return false
	}
	var w writer
	w.typ(d.typ, 0)
	const explained = len("; " + " = ")
	name := len(baseName(d.pointer))
	return d.uses*len(w.buf) <= d.uses*name+explained+name+len(w.buf)
}

// isFlat reports whether a type neither nests objects nor names a definition.
func isFlat(t *typ) bool {
	if t.kind == list && t.rest != nil && !isFlat(t.rest) {
		return false
	}
	return t.kind != object && t.kind != named && !slices.ContainsFunc(t.parts, func(p *typ) bool { return !isFlat(p) })
}

// written returns the type that is written for t: that of a short definition, or t itself.
func written(t *typ) *typ {
	if t.kind == named && t.def.short {
		return t.def.typ
	}
	return t
}

// maxNames limits the definitions of a signature; further ones are shown as unknown.
const maxNames = 64

var reserved = []string{
	rootName, "Record", "unknown", "never", "true", "false", "key",
	"string", "number", "integer", "boolean", "null", "object", "array",
}

// name gives a definition a name of its own, unless it has one. It reports whether there was room for it.
func (l *layout) name(d *def) bool {
	if d.name != "" {
		return true
	}
	if len(l.names) == maxNames {
		return false
	}
	base := baseName(d.pointer)
	d.name = base
	for i := 2; slices.Contains(reserved, d.name) || slices.Contains(l.names, d.name); i++ {
		d.name = base + strconv.Itoa(i)
	}
	l.names = append(l.names, d.name)
	d.part = &part{head: d.name + " = ", typ: d.typ}
	return true
}

// steps are tokens of a pointer that say nothing about the schema they lead to.
var steps = []string{
	"properties", "additionalProperties", "items", "prefixItems", "anyOf", "oneOf", "allOf", "$defs", "definitions",
}

// baseName makes an identifier of the last useful token of a pointer: Start of "#/properties/start".
func baseName(pointer string) string {
	tokens := strings.FieldsFunc(pointer, func(r rune) bool { return r == '#' || r == '/' || r == '.' })
	for i, token := range slices.Backward(tokens) {
		if i > 0 && (slices.Contains(steps, token) || isDigit(token[0])) {
			continue
		}
		name := strings.Map(identifierRune, token[:min(len(token), maxPattern)])
		if !isIdentifier(name) {
			break
		}
		if !isDefinition(pointer) {
			name = strings.ToUpper(name[:1]) + name[1:]
		}
		return name
	}
	return "Type"
}

// identifierRune keeps characters of identifiers and drops all others.
func identifierRune(r rune) rune {
	if r < 0x80 && (isLetter(byte(r)) || isDigit(byte(r))) {
		return r
	}
	return -1
}
