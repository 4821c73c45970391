package executor

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"mcpx/executor/validate"
	"mcpx/internal/rawjson"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// arguments returns the arguments to send: the client's own if they fit the tool's
// schema, or repaired if there is only one way to do that. It sets the call's notes.
func (e *Executor) arguments(ctx context.Context, c *Call, u *live.Upstream, t *lists.Tool) ([]byte, error) {
	schema := validatorOf(t)
	if !c.mayWait {
		if !c.isPlain() || !schema.Accepts(c.Arguments) {
			return nil, ErrMustWait
		}
		return c.Arguments, nil
	}
	repair := valueRepair{schema, meantValue}
	if c.isFlat { // the other repairs, and notes, are only for exec
		c = &Call{Arguments: c.Arguments, isFlat: true}
		repair.meant = parseString
	}
	raw, err := unwrap(*c, schema.properties)
	if err != nil {
		return nil, &Invalid{Problems: []validate.Problem{{Text: err.Error()}}, tool: t}
	}
	if !c.isFlat && mayHaveReference(raw) {
		r := resolver{input: t.Input}
		if raw, err = r.resolve(ctx, e.results, ownerOf(c.Client), raw); err != nil {
			return nil, err
		}
	}
	if schema.Accepts(raw) {
		return raw, nil
	}
	verdict := schema.Check(ctx, raw)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	raw, verdict = repair.run(ctx, raw, verdict)
	if len(verdict.Problems) > 0 {
		return nil, &Invalid{Problems: verdict.Problems[:min(len(verdict.Problems), maxProblems)], tool: t}
	}
	if verdict.Unchecked != "" && !schema.isLogged.Swap(true) {
		e.log.Warn().Str("server", u.Name).Str("tool", t.Name).Str("reason", verdict.Unchecked).
			Msg("could not check all arguments of a call against the tool's schema; the call was sent anyway")
	}
	c.notes = noteLines(verdict.Notes)
	return raw, nil
}

// quickBytes bounds the arguments that are checked in the goroutine that reads the
// client's messages, since that delays the next message.
const quickBytes = 16 << 10

// isPlain reports whether the arguments are short, and nothing has to be done with them before
// they are checked.
func (c *Call) isPlain() bool {
	return len(c.Arguments) <= quickBytes && rawjson.Kind(c.Arguments) == '{' && c.Siblings == nil && (c.isFlat || !mayHaveReference(c.Arguments))
}

// maxProblems is how many problems of a call are reported.
const maxProblems = 5

// noteLines returns the lines that a result has about its call's arguments.
func noteLines(notes []validate.Problem) (lines []string) {
	for _, n := range notes[:min(len(notes), maxProblems)] {
		lines = append(lines, "note: "+n.String())
	}
	return lines
}

// validator checks the arguments of one tool.
type validator struct {
	*validate.Validator
	properties map[string]bool // the parameters that the schema declares
	isLogged   atomic.Bool     // that some arguments were not checked
}

// validatorOf returns the validator of a tool, which lives as long as the tool.
func validatorOf(t *lists.Tool) *validator { return t.Derived(newValidator).(*validator) }

func newValidator(t *lists.Tool) any {
	v := &validator{Validator: validate.New(t.Input), properties: map[string]bool{}}
	root, _ := t.Input.Root() // zero if the schema cannot be read
	for name := range root.Get("properties").Members() {
		v.properties[name] = true
	}
	return v
}

// Compile prepares the check of a tool's arguments, so that its first call does not
// have to wait for that.
func Compile(t *lists.Tool) { validatorOf(t).Unjudged() }

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
// again. It returns the repaired arguments and their verdict. If they are still not valid, it
// returns what it got, unless a parsed string has a duplicate key.
func (r valueRepair) run(ctx context.Context, raw []byte, verdict validate.Verdict) ([]byte, validate.Verdict) {
	repaired, problems := raw, verdict.Problems
	for range maxRepairRounds {
		var ok bool
		if repaired, ok = r.round(repaired, problems); !ok {
			break
		}
		now := r.schema.Check(ctx, repaired)
		isChecked := now.Unchecked == "" || now.Unchecked == verdict.Unchecked
		if len(now.Problems) == 0 && isChecked || rawjson.DuplicateKey(repaired) != nil {
			return repaired, now
		}
		problems = now.Problems
	}
	return raw, verdict
}

// round repairs the values of all problems once. ok is false if one of them cannot be
// repaired, or if there is none.
func (r valueRepair) round(raw []byte, problems []validate.Problem) (repaired []byte, ok bool) {
	root, err := rawjson.Parse(raw)
	if err != nil || len(problems) > maxRepairs {
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
