package executor

import (
	"sync/atomic"

	"mcpx/executor/validate"
	"mcpx/internal/rawjson"
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
	value, err := validate.Decode(raw)
	if err != nil {
		return nil, &Invalid{Problems: []validate.Problem{{Text: err.Error()}}, tool: t}
	}
	if err := refuseDuplicates(raw, t); err != nil {
		return nil, err
	}
	defer e.reportUnchecked(schema, u, t)
	problems := schema.Check(value)
	if len(problems) == 0 || rawjson.HasLoneSurrogate(raw) { // Decode would make different strings equal
		c.notes = noteLines(schema.Notes(value))
		return raw, nil
	}
	if repaired, value, ok := repair.run(raw, problems); ok {
		c.notes = noteLines(schema.Notes(value))
		return repaired, refuseDuplicates(repaired, t) // a parsed string may have duplicates
	}
	return nil, &Invalid{Problems: problems[:min(len(problems), maxProblems)], tool: t}
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

// reportUnchecked logs once per tool that its arguments cannot be checked, and once
// that a call was not checked.
func (e *Executor) reportUnchecked(v *validator, u *live.Upstream, t *lists.Tool) {
	if reason := v.Unjudged(); reason != "" && !v.loggedUnjudged.Swap(true) {
		e.log.Warn().Str("server", u.Name).Str("tool", t.Name).Str("reason", reason).
			Msg("cannot check the tool's arguments against its schema; they are sent unchecked")
	}
	if reason := v.Skipped(); reason != "" && !v.loggedSkipped.Swap(true) {
		e.log.Warn().Str("server", u.Name).Str("tool", t.Name).Str("reason", reason).
			Msg("could not check the arguments of a call; it was sent unchecked")
	}
}

// givenTwice is the problem with a duplicate key: mcpx checks the last value, and the
// upstream may use the first.
const givenTwice = "given twice"

// refuseDuplicates returns an error if arguments have a duplicate key.
func refuseDuplicates(raw []byte, t *lists.Tool) error {
	if path := rawjson.DuplicateKey(raw); path != nil {
		return &Invalid{Problems: []validate.Problem{{Path: path, Text: givenTwice}}, tool: t}
	}
	return nil
}

// validator checks the arguments of one tool.
type validator struct {
	*validate.Validator
	properties map[string]bool // the parameters that the schema declares

	loggedUnjudged, loggedSkipped atomic.Bool // each is logged once
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
