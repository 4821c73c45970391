package executor

import (
	"sync/atomic"

	"mcpx/executor/validate"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// arguments returns the arguments to send: the client's own if they fit the tool's
// schema, or repaired if there is only one way to do that. It sets the call's notes.
func (e *Executor) arguments(c *Call, u *live.Upstream, t *lists.Tool) ([]byte, error) {
	schema := validatorOf(t)
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
		r := resolver{values: e.results.Values(ownerOf(c.Client)), input: t.Input}
		if raw, err = r.resolve(raw, nil); err != nil {
			return nil, err
		}
	}
	if schema.Accepts(raw) {
		return raw, nil
	}
	verdict := schema.Check(raw)
	if verdict.Unchecked != "" && !schema.isLogged.Swap(true) {
		e.log.Warn().Str("server", u.Name).Str("tool", t.Name).Str("reason", verdict.Unchecked).
			Msg("could not check the arguments of a call against the tool's schema; they were sent unchecked")
	}
	raw, verdict = repair.run(raw, verdict)
	if len(verdict.Problems) > 0 {
		return nil, &Invalid{Problems: verdict.Problems[:min(len(verdict.Problems), maxProblems)], tool: t}
	}
	c.notes = noteLines(verdict.Notes)
	return raw, nil
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
	isLogged   atomic.Bool     // that arguments were not checked
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
