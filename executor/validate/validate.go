// Package validate checks a tool's arguments against the tool's JSON Schema before
// a call is sent.
//
// A valid call must never be refused, so two checks must agree before one is. The
// schema is first reduced to the keywords that are judged, which can only make it
// accept more (reduce.go). gojsonschema then says yes or no, to the same rules in
// the words of draft 7 (engine.go). After a no, explain.go looks for the reasons;
// if it finds none, the call passes. For the few schemas that draft 7 cannot
// express, explain.go decides alone.
//
// Valid arguments may still look wrong: a string does not fit its format, or a name is
// misspelled. They are sent, and note.go says what to tell the caller.
package validate

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

const (
	timeLimit = 250 * time.Millisecond // for compiling, and for one check

	maxSchemaDepth    = 100
	maxSchemaNodes    = 20_000
	maxArgumentsNodes = 200_000
	maxInlineNodes    = 2_000 // a schema and arguments of this size need no timer

	// maxOverdue limits the checks, of all schemas, that still run after their time
	// limit. While there are that many, no further costly check starts.
	maxOverdue = 4
)

var (
	errTimeout   = errors.New("took too long")
	errBusy      = errors.New("earlier checks that took too long are still running")
	errDeep      = errors.New("nested too deep")
	errMany      = errors.New("too many values")
	errSurrogate = errors.New("half of a surrogate pair") // decoding makes different strings equal
)

// overdue counts the checks that still run after their limit.
var overdue atomic.Int32

// Validator checks values against one schema. It is safe for concurrent use.
type Validator struct {
	schema *schema.Schema
	limit  time.Duration

	once  sync.Once
	ready atomic.Bool // judge and err are set
	judge judge
	err   error // why the schema cannot be judged

	// A costly check cannot be stopped, so a schema has one at a time. Its caller
	// holds turn while it waits.
	turn      chan struct{}
	isOverdue atomic.Bool // a check that exceeded its limit still runs
}

// judge is a compiled schema.
type judge struct {
	quick   *quick         // nil for most schemas that are not flat
	isCheap bool           // a check takes at most size of schema × size of arguments
	engine  func() *engine // judges whatever quick does not accept
}

// New returns a Validator for a tool's input schema. The work is done on first use.
func New(s *schema.Schema) *Validator {
	return &Validator{schema: s, limit: timeLimit, turn: make(chan struct{}, 1)}
}

// Unjudged returns why the schema is never enforced, "" if it is. The first call
// compiles the schema and waits no longer than the limit. A schema that takes
// longer is enforced once it is compiled.
func (v *Validator) Unjudged() string {
	v.once.Do(func() {
		compiled := make(chan struct{})
		go func() {
			defer close(compiled)
			v.judge, v.err = recovered(func() (judge, error) { return compile(v.schema) })
			v.ready.Store(true)
		}()
		wait(compiled, v.limit)
	})
	if v.ready.Load() && v.err != nil {
		return "compile: " + v.err.Error()
	}
	return ""
}

// Accepts reports whether raw arguments are surely valid and need no note, at a glance.
// If it returns false, call Check. It never waits: before the schema is compiled it
// accepts nothing.
func (v *Validator) Accepts(raw []byte) bool {
	return v.ready.Load() && v.judge.quick.accepts(raw)
}

// Verdict is the result of a check.
type Verdict struct {
	Problems []Problem // what is wrong with the arguments

	// Notes are probable mistakes that do not make the arguments invalid: strings that do not
	// fit their format, and undeclared properties whose names are close to declared ones.
	Notes []Problem

	Unchecked string // why the arguments were not checked, "" if they were
}

// Check checks arguments. They stay unchecked if they cannot be judged, or if that takes
// too long, but under every schema they must be JSON without duplicate keys.
func (v *Validator) Check(raw []byte) Verdict {
	if err := rawjson.Check(raw); err != nil {
		return Verdict{Problems: []Problem{{Text: err.Error()}}}
	}
	if path := rawjson.DuplicateKey(raw); path != nil { // the upstream may use the other value
		return Verdict{Problems: []Problem{{Path: path, Text: "given twice"}}}
	}
	if why := v.Unjudged(); why != "" {
		return Verdict{Unchecked: why}
	}
	verdict, err := v.run(raw)
	if err != nil {
		return Verdict{Unchecked: "check: " + err.Error()}
	}
	return verdict
}

// run runs a check: here if it surely ends soon, and else for no longer than the limit.
func (v *Validator) run(raw []byte) (Verdict, error) {
	arguments, nodes, err := decode(raw)
	switch {
	case err != nil:
		return Verdict{}, err
	case !v.ready.Load():
		return Verdict{}, errors.New("the schema is still being compiled")
	case rawjson.HasLoneSurrogate(raw):
		return Verdict{}, errSurrogate
	case nodes > maxArgumentsNodes:
		return Verdict{}, errMany
	}
	check := func() (Verdict, error) { return v.judge.engine().check(arguments), nil }
	if v.judge.isCheap && nodes <= maxInlineNodes {
		return recovered(check)
	}
	return v.checkWithin(check)
}

// checkWithin runs a check that might take long and waits no longer than the limit.
// gojsonschema takes no context, so the check itself runs to its end. Until then,
// no other check starts for this schema: errBusy.
func (v *Validator) checkWithin(check func() (Verdict, error)) (Verdict, error) {
	v.turn <- struct{}{}
	defer func() { <-v.turn }()
	if v.isOverdue.Load() || overdue.Load() >= maxOverdue {
		return Verdict{}, errBusy
	}
	var verdict Verdict
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		verdict, err = recovered(check)
	}()
	if wait(done, v.limit) {
		return verdict, err
	}
	v.isOverdue.Store(true)
	overdue.Add(1)
	go func() {
		<-done
		v.isOverdue.Store(false)
		overdue.Add(-1)
	}()
	return Verdict{}, errTimeout
}

func compile(s *schema.Schema) (judge, error) {
	root, err := s.Root()
	switch {
	case err != nil:
		return judge{}, err
	case rawjson.HasLoneSurrogate(root.Raw()):
		return judge{}, errSurrogate
	case root.Tree().Depth() > maxSchemaDepth+1:
		return judge{}, errDeep
	case root.Tree().Len() > maxSchemaNodes:
		return judge{}, errMany
	}
	rules, isCheap, err := reduce(s)
	if err != nil {
		return judge{}, err
	}
	return judge{quick: newQuick(rules), isCheap: isCheap, engine: newEngine(s)}, nil
}

// waitSteps is how many steps wait makes.
const waitSteps = 10

// wait waits until done is closed, but no longer than limit, and reports whether it
// was closed. It waits in steps: when the whole machine stops for a while, no more
// than two steps pass.
func wait(done <-chan struct{}, limit time.Duration) bool {
	tick := time.NewTicker(max(limit/waitSteps, 1))
	defer tick.Stop()
	for range waitSteps {
		select {
		case <-done:
			return true
		case <-tick.C:
		}
	}
	return false
}

// recovered calls f and returns a panic as an error.
func recovered[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
