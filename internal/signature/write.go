package signature

import "math"

// writer writes types as text, and stops when the text gets too long.
type writer struct {
	buf    []byte
	losses int     // how much detail is left out, see below
	layout *layout // gives definitions their names
	used   []*def  // the definitions that the text names
}

// maxObjects limits the nesting of objects, maxPart the text of one parameter or definition.
const (
	maxObjects = 5
	maxPart    = 1000
)

// The first loss is that of the notes. From then on, nested objects are shown only while they are small: every loss and
// every level halves the limit. Later losses hide optional properties, first in large objects, at last in all.
const (
	notesLost    = 1
	optionalLess = 8
	optionalLost = 11
	objectsLost  = 12
	typeLost     = 13
)

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

func (w *writer) full() bool { return len(w.buf) > maxPart }

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
	switch t.kind {
	case word, literal:
		w.put(t.text)
	case union:
		w.join(t.parts, " | ", depth)
	case intersection:
		w.join(t.parts, " & ", depth)
	case list:
		w.list(t, depth)
	case object:
		w.object(t, depth)
	case named:
		w.named(t.def, depth)
	}
	if t.note != "" && w.losses == 0 {
		w.put(" /*" + t.note + "*/")
	}
}

func (w *writer) join(types []*typ, separator string, depth int) {
	hinted := false
	for i, t := range types {
		start := len(w.buf)
		if i > 0 {
			w.put(separator)
		}
		member := len(w.buf)
		if separator == " & " && written(t).kind == union {
			w.grouped(t, depth)
		} else {
			w.typ(t, depth)
		}
		if string(w.buf[member:]) != hint {
			continue
		}
		if hinted { // once is enough
			w.buf = w.buf[:start]
		}
		hinted = true
	}
}

func (w *writer) grouped(t *typ, depth int) {
	w.put("(")
	w.typ(t, depth)
	w.put(")")
}

func (w *writer) list(t *typ, depth int) {
	if len(t.parts) == 0 && t.rest != nil {
		w.element(t.rest, depth)
		w.put("[]")
		return
	}
	w.put("[")
	for i, p := range t.parts {
		if i > 0 {
			w.put(", ")
		}
		if i < t.least {
			w.typ(p, depth)
			continue
		}
		w.element(p, depth)
		w.put("?")
	}
	switch t.rest {
	case nil:
	case unknown:
		w.put(", …")
	default:
		w.put(", ...")
		w.element(t.rest, depth)
		w.put("[]")
	}
	w.put("]")
}

// element writes a type that gets a suffix.
func (w *writer) element(t *typ, depth int) {
	if inner := written(t); inner.kind == union || inner.kind == intersection {
		w.grouped(t, depth)
		return
	}
	w.typ(t, depth)
}

// hint stands for an object whose properties are not shown.
const hint = "{…}"

func (w *writer) object(t *typ, depth int) {
	if len(t.props) == 0 && t.rest == nil {
		w.put("{}")
		return
	}
	if depth == maxObjects || w.losses >= objectsLost {
		w.put(hint)
		return
	}
	start, used := len(w.buf), len(w.used)
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
		w.buf = append(w.buf[:start], hint...)
		w.used = w.used[:used]
	}
}

// restKey stands for all other keys.
const restKey = "[key: string]: "

func (w *writer) properties(t *typ, depth int) {
	cut := false
	before := ""
	start := len(w.buf)
	for _, p := range t.props {
		head := p.head()
		if head == "" || !p.required && len(w.buf)-start > w.optionalRoom() {
			cut = true
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

// named writes the name of a definition, or the definition itself if that is shorter.
func (w *writer) named(d *def, depth int) {
	if d.short {
		w.typ(d.typ, depth)
		return
	}
	if !w.layout.name(d) {
		w.put(unknown.text)
		return
	}
	w.put(d.name)
	w.used = append(w.used, d)
}
