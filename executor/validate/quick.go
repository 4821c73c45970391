package validate

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"mcpx/internal/rawjson"
)

// quick says yes to raw arguments that are surely valid, without decoding them:
// flat objects under the kind of schema that most tools have. It never says no.
// Arguments that it does not accept are decoded and judged, which costs twenty
// times more (BenchmarkAccepts).
type quick struct {
	properties []property
	required   uint64 // a bit for each property
}

// property is a parameter of a flat schema.
type property struct {
	name  string
	value *quickValue // nil: a schema that quick does not understand
}

// quickValue is a schema that needs no more than a look at a raw value.
type quickValue struct {
	types    []string    // empty: all
	enum     [][]byte    // raw strings; empty: all
	min, max *int64      // of integers
	format   *format     // of strings; nil: all
	items    *quickValue // of arrays; nil: quick does not understand them
}

// maxQuick is how many properties have a bit.
const maxQuick = 64

// newQuick returns nil if quick does not understand the rule.
func newQuick(r *rule) *quick {
	rest := *r
	rest.named, rest.size, rest.types, rest.properties, rest.required, rest.additionalProperties = false, 0, nil, nil, nil, nil
	if !isZero(rest) || len(r.types) > 0 && !slices.Contains(r.types, "object") || len(r.properties) > maxQuick {
		return nil
	}
	q := &quick{}
	for _, name := range slices.Sorted(maps.Keys(r.properties)) {
		q.properties = append(q.properties, property{name, newQuickValue(r.properties[name])})
	}
	for _, name := range r.required {
		i := q.find(name)
		if i < 0 {
			return nil
		}
		q.required |= 1 << i
	}
	return q
}

// isZero reports whether a rule has no keyword.
func isZero(r rule) bool { return reflect.ValueOf(r).IsZero() }

// newQuickValue returns nil if quick does not understand the rule.
func newQuickValue(r *rule) *quickValue {
	rest := *r
	rest.named, rest.size, rest.types, rest.enum, rest.enumKeys, rest.minimum, rest.maximum, rest.items, rest.format = false, 0, nil, nil, nil, "", "", nil, nil
	if !isZero(rest) {
		return nil
	}
	v := &quickValue{types: r.types, items: &quickValue{}, format: r.format}
	if r.items != nil {
		v.items = newQuickValue(r.items)
	}
	for _, value := range r.enum {
		if text, ok := value.(string); ok {
			v.enum = append(v.enum, rawjson.AppendString(nil, text))
		}
	}
	var ok bool
	if v.min, ok = integer(r.minimum); !ok {
		return nil
	}
	if v.max, ok = integer(r.maximum); !ok || len(r.enum) > 0 && len(v.enum) == 0 {
		return nil
	}
	return v
}

// integer returns the value of a limit, nil if there is none. ok is false if it is
// not written as an integer, or a large one.
func integer(limit json.Number) (value *int64, ok bool) {
	if limit == "" {
		return nil, true
	}
	n, err := limit.Int64()
	return &n, err == nil
}

func (q *quick) find(name string) int {
	for i := range q.properties {
		if q.properties[i].name == name {
			return i
		}
	}
	return -1
}

// accepts reports whether the arguments are surely valid and need no note. It leaves
// properties that are not declared, or occur twice, to the whole check.
func (q *quick) accepts(raw []byte) bool {
	if q == nil {
		return false
	}
	var given uint64
	ok := true
	err := rawjson.Object(raw, func(key string, value []byte) bool {
		i := q.find(key)
		ok = i >= 0 && given&(1<<i) == 0 && q.properties[i].value.accepts(value)
		given |= 1 << max(i, 0)
		return ok
	})
	return ok && err == nil && given&q.required == q.required
}

func (v *quickValue) accepts(value []byte) bool {
	if v == nil || len(v.enum) > 0 && !slices.ContainsFunc(v.enum, func(e []byte) bool { return bytes.Equal(e, value) }) {
		return false
	}
	switch value[0] {
	case '"':
		return v.allows("string") && (v.format == nil || v.format.acceptsRaw(value))
	case 't', 'f':
		return v.allows("boolean")
	case 'n':
		return v.allows("null")
	case '{': // may have a key twice
		return false
	case '[':
		return v.allows("array") && v.items.acceptAll(value)
	}
	return v.number(value)
}

func (v *quickValue) allows(name string) bool {
	return len(v.types) == 0 || slices.Contains(v.types, name)
}

// acceptAll reports whether every element of an array, none of them an array, is
// accepted.
func (v *quickValue) acceptAll(array []byte) bool {
	for element := range rawjson.Elements(array) {
		if element[0] == '[' || !v.accepts(element) {
			return false
		}
	}
	return true
}

// number reports whether a number is accepted. A number that is not written as an
// integer may still be one, which quick does not find out.
func (v *quickValue) number(value []byte) bool {
	bounded := v.min != nil || v.max != nil
	if !bounded && v.allows("number") {
		return true
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return err == nil && (v.allows("integer") || v.allows("number")) && (v.min == nil || n >= *v.min) && (v.max == nil || n <= *v.max)
}
