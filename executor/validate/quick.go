package validate

import (
	"bytes"
	"strconv"

	"mcpx/internal/rawjson"
)

// quick says yes to raw arguments that are surely valid, without decoding them:
// flat objects under the kind of schema that most tools have. It never says no.
// What it does not say yes to is decoded and judged; that costs ten times more.
type quick struct {
	properties []property
	required   uint64 // a bit for each property
}

// property is a parameter of a flat schema.
type property struct {
	name string
	rule *rule // nil: one that quick does not understand
}

// rule is a schema that a glance at a value can settle.
type rule struct {
	types    map[string]bool // empty: all
	enum     [][]byte        // raw strings; empty: all
	min, max *int64          // of integers
	items    *rule           // of arrays; nil: quick does not understand them
}

// maxQuick is how many properties have a bit.
const maxQuick = 64

// quickly reads a reduced schema; nil if quick does not understand it.
func quickly(root any) *quick {
	object, _ := root.(map[string]any)
	if object == nil || !only(object, "type", "properties", "required", "additionalProperties", "$defs") {
		return nil
	}
	if types := typesOf(object); len(types) > 0 && !types["object"] {
		return nil
	}
	properties, _ := object["properties"].(map[string]any)
	if len(properties) > maxQuick {
		return nil
	}
	q := &quick{}
	for name, schema := range properties {
		q.properties = append(q.properties, property{name, ruleOf(schema)})
	}
	required, _ := object["required"].([]any)
	for _, name := range required {
		i := q.find(name.(string))
		if i < 0 {
			return nil
		}
		q.required |= 1 << i
	}
	return q
}

func only(object map[string]any, known ...string) bool {
	n := 0
	for _, name := range known {
		if _, ok := object[name]; ok {
			n++
		}
	}
	return n == len(object)
}

func typesOf(object map[string]any) map[string]bool {
	list, _ := object["type"].([]any)
	types := map[string]bool{}
	for _, name := range list {
		types[name.(string)] = true
	}
	return types
}

// ruleOf reads the schema of a parameter; nil if quick does not understand it.
func ruleOf(schema any) *rule {
	object, _ := schema.(map[string]any)
	if object == nil || !only(object, "type", "enum", "minimum", "maximum", "items") {
		return nil
	}
	r := &rule{types: typesOf(object), items: &rule{}}
	if items, ok := object["items"]; ok {
		r.items = ruleOf(items)
	}
	values, _ := object["enum"].([]any)
	for _, value := range values {
		if text, ok := value.(string); ok {
			r.enum = append(r.enum, rawjson.AppendString(nil, text))
		}
	}
	if len(values) > 0 && len(r.enum) == 0 {
		return nil
	}
	for name, limit := range map[string]**int64{"minimum": &r.min, "maximum": &r.max} {
		value, ok := object[name]
		if !ok {
			continue
		}
		n := rational(value)
		if n == nil || !n.IsInt() || !n.Num().IsInt64() {
			return nil
		}
		whole := n.Num().Int64()
		*limit = &whole
	}
	return r
}

func (q *quick) find(name string) int {
	for i := range q.properties {
		if q.properties[i].name == name {
			return i
		}
	}
	return -1
}

// accepts reports whether the arguments are surely valid. A property that is not
// declared, or is given twice, is for others to judge.
func (q *quick) accepts(raw []byte) bool {
	if q == nil {
		return false
	}
	var given uint64
	ok := true
	err := rawjson.Object(raw, func(key string, value []byte) bool {
		i := q.find(key)
		ok = i >= 0 && given&(1<<i) == 0 && q.properties[i].rule.accepts(value)
		given |= 1 << max(i, 0)
		return ok
	})
	return ok && err == nil && given&q.required == q.required
}

func (r *rule) accepts(value []byte) bool {
	if r == nil || len(r.enum) > 0 && !contains(r.enum, value) {
		return false
	}
	switch value[0] {
	case '"':
		return r.allows("string")
	case 't', 'f':
		return r.allows("boolean")
	case 'n':
		return r.allows("null")
	case '{': // may hold a key twice
		return false
	case '[':
		return r.allows("array") && r.items.acceptAll(value)
	}
	return r.number(value)
}

func (r *rule) allows(name string) bool { return len(r.types) == 0 || r.types[name] }

func contains(values [][]byte, value []byte) bool {
	for _, v := range values {
		if bytes.Equal(v, value) {
			return true
		}
	}
	return false
}

// acceptAll reports whether every element of an array, none of them an array, is
// accepted.
func (r *rule) acceptAll(array []byte) bool {
	for element := range rawjson.Elements(array) {
		if element[0] == '[' || !r.accepts(element) {
			return false
		}
	}
	return true
}

// number reports whether a number is accepted. What is not written as an integer
// may still be one.
func (r *rule) number(value []byte) bool {
	bounded := r.min != nil || r.max != nil
	if !bounded && r.allows("number") {
		return true
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return err == nil && (r.allows("integer") || r.allows("number")) && (r.min == nil || n >= *r.min) && (r.max == nil || n <= *r.max)
}
