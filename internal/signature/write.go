package signature

import "math"

// writer writes types as text, and stops when the text gets too long.
type writer struct {
	buf    []byte
	losses int // how much detail is left out, see below
	types  int // written so far
}

// maxObjects limits the nesting of objects, maxPart the text of one parameter, and maxTypes the work for it: a definition
// may be used so often that writing it, only to hide it again, would not end.
const (
	maxObjects = 5
	maxPart    = 1000
	maxTypes   = 3_000
)

// The first loss is that of the notes. From then on, nested objects are shown only while they are small: every loss and
// every level halves the limit. Later losses hide optional properties, first in large objects, at last in all.
const (
	notesLost    = 1
	optionalLess = 8
	optionalLost = 11
	objectsLost  = 12
	typeLost     = 13
	typesLost    = 14 // of all parameters: only their names are shown
)

// written returns a type as text with all detail, or nothing if it is too long.
func written(t *typ) string {
	var w writer
	if w.typ(t, 0); w.full() {
		return ""
	}
	return string(w.buf)
}

// room returns how much text a nested object may take.
func (w *writer) room(depth int) int {
	if depth == 0 || w.losses == 0 {
		return math.MaxInt
	}
	return softLimit >> (depth + w.losses - 1)
}

// optionalRoom returns how long an object may get before it shows no more optional properties.
func (w *writer) optionalRoom() int {
	switch {
	case w.losses < optionalLess:
		return math.MaxInt
	case w.losses < optionalLost:
		return softLimit / 4 >> (w.losses - optionalLess)
	}
	return -1
}

func (w *writer) full() bool { return len(w.buf) > maxPart || w.types > maxTypes }

func (w *writer) put(s string) {
	if !w.full() {
		w.buf = append(w.buf, s...)
	}
}

// typ writes a type that is nested in depth objects.
func (w *writer) typ(t *typ, depth int) {
	if w.full() {
		return
	}
	w.types++
	switch t.kind {
	case word, literal:
		w.put(t.text)
	case union:
		w.union(t.parts, depth)
	case list:
		w.list(t, depth)
	case object:
		w.object(t, depth)
	}
	if t.note != "" && w.losses == 0 {
		w.put(" /*" + t.note + "*/")
	}
}

func (w *writer) union(types []*typ, depth int) {
	isHidden := false
	for i, t := range types {
		start := len(w.buf)
		if i > 0 {
			w.put(" | ")
		}
		member := len(w.buf)
		w.typ(t, depth)
		if string(w.buf[member:]) != hidden.text {
			continue
		}
		if isHidden { // once is enough
			w.buf = w.buf[:start]
		}
		isHidden = true
	}
}

func (w *writer) list(t *typ, depth int) {
	start, end := "", "[]"
	if t.rest.kind == union {
		start, end = "(", ")[]"
	}
	w.put(start)
	w.typ(t.rest, depth)
	w.put(end)
}

func (w *writer) object(t *typ, depth int) {
	if len(t.props) == 0 && t.rest == nil {
		w.put("{}")
		return
	}
	if depth == maxObjects || w.losses >= objectsLost {
		w.put(hidden.text)
		return
	}
	start := len(w.buf)
	if len(t.props) == 0 {
		w.put("Record<string, ")
		w.typ(t.rest, depth+1)
		w.put(">")
	} else {
		w.put("{")
		w.properties(t, depth+1)
		w.put("}")
	}
	if len(w.buf)-start > w.room(depth) {
		w.buf = append(w.buf[:start], hidden.text...)
	}
}

// restKey stands for all other keys.
const restKey = "[key: string]: "

func (w *writer) properties(t *typ, depth int) {
	cut := false
	before := ""
	start := len(w.buf)
	for _, p := range t.props {
		if w.full() {
			return
		}
		head := p.head()
		if head == "" || !p.required && len(w.buf)-start > w.optionalRoom() {
			cut = true
			w.types++ // properties that are left out take time too
			continue
		}
		w.put(before + head)
		w.typ(p.typ, depth)
		w.put(p.value)
		before = separator
	}
	switch {
	case cut:
		w.put(before + open.text)
	case t.rest != nil:
		w.put(before + restKey)
		w.typ(t.rest, depth)
	}
}
