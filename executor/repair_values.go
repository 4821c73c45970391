package executor

import (
	"slices"
	"strings"

	"mcpx/executor/validate"
	"mcpx/internal/rawjson"
)

// valueRepair replaces values of a wrong type by those that were meant.
type valueRepair struct {
	schema *validator
	meant  func(value []byte, want []string) (meant []byte, ok bool)
}

// Limits of a valueRepair: no model nests deeper or sends more.
const (
	maxRepairRounds = 8
	maxRepairs      = 500
)

// run repairs every value that has a problem. A parsed string may contain such values
// again. It also returns the repaired arguments decoded. ok is false if they are still not
// valid.
func (r valueRepair) run(raw []byte, problems []validate.Problem) (repaired []byte, decoded any, ok bool) {
	for range maxRepairRounds {
		if len(problems) > maxRepairs {
			break
		}
		if raw, ok = r.round(raw, problems); !ok {
			break
		}
		value, err := validate.Decode(raw)
		if err != nil {
			break
		}
		if problems, ok = r.schema.Judge(value); len(problems) == 0 {
			return raw, value, ok
		}
	}
	return nil, nil, false
}

// round repairs the values of all problems once. ok is false if one of them cannot be
// repaired, or if there is none.
func (r valueRepair) round(raw []byte, problems []validate.Problem) (repaired []byte, ok bool) {
	root, err := rawjson.Parse(raw)
	if err != nil {
		return nil, false
	}
	var found []rawjson.Edit
	for i, p := range problems {
		if slices.ContainsFunc(problems[:i], func(q validate.Problem) bool { return slices.Equal(p.Path, q.Path) }) {
			continue // two rules for one value
		}
		n := root
		for _, step := range p.Path {
			n = n.Child(step)
		}
		value, ok := r.meant(n.Raw(), p.Want)
		if !ok {
			return nil, false
		}
		found = append(found, n.Replace(value))
	}
	return rawjson.Splice(raw, found), len(found) > 0
}

// meantValue returns the value of a wanted type that a value was meant to be: a string
// contains an object or an array, or exactly one scalar type is wanted.
func meantValue(value []byte, want []string) ([]byte, bool) {
	if inner, ok := parseString(value, want); ok {
		return inner, true
	}
	return convertScalar(value, onlyScalar(want))
}

// parseString returns the wanted object or array that a string contains.
func parseString(value []byte, want []string) ([]byte, bool) {
	text, isString := rawjson.String(value)
	inner := []byte(strings.TrimSpace(text))
	if !isString || rawjson.Check(inner) != nil {
		return nil, false
	}
	for _, w := range want {
		if w == "object" && rawjson.Kind(inner) == '{' || w == "array" && rawjson.Kind(inner) == '[' {
			return inner, true
		}
	}
	return nil, false
}

// onlyScalar returns the one scalar type among JSON types, "" if there is none or more
// than one. An integer is a number, and null does not count.
func onlyScalar(types []string) (only string) {
	for _, name := range types {
		if name == "integer" {
			name = "number"
		}
		switch {
		case !slices.Contains([]string{"string", "number", "boolean"}, name):
		case only != "" && only != name:
			return ""
		default:
			only = name
		}
	}
	return only
}

// convertScalar returns a number as a string with the same digits, or the number or
// boolean that a string spells exactly.
func convertScalar(value []byte, want string) ([]byte, bool) {
	text, isString := rawjson.View(value)
	switch {
	case want == "string" && validate.IsNumber(string(value)):
		return slices.Concat([]byte(`"`), value, []byte(`"`)), true
	case want == "number" && isString && validate.IsNumber(text),
		want == "boolean" && isString && (text == "true" || text == "false"):
		return []byte(text), true
	}
	return nil, false
}
