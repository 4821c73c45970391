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
// How long all that takes is counted before (steps.go). If it is too long, the cheap parts of
// the schema are checked (parts.go).
//
// Valid arguments may still look wrong: a string does not fit its format, or a name is
// misspelled. They are sent, and note.go says what to tell the caller.
package validate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

const (
	maxSchemaDepth    = 100
	maxSchemaNodes    = 20_000
	maxArgumentsNodes = 200_000

	// A check of more bytes, or with more steps, is costly.
	cheapBytes = 64 << 10
	cheapSteps = 2_000_000
)

var (
	errDeep      = errors.New("nested too deep")
	errMany      = errors.New("too many values")
	errSurrogate = errors.New("half of a surrogate pair") // decoding makes different strings equal
)

// slots bounds the costly checks that run at the same time, and with them their memory. Half
// of the processors are left for everything else.
var slots = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// Validator checks values against one schema. It is safe for concurrent use.
type Validator struct {
	schema *schema.Schema

	once  sync.Once
	ready atomic.Bool // judge and err are set
	judge judge
	err   error // why the schema cannot be judged
}

// judge is a compiled schema.
type judge struct {
	quick  *quick         // nil for most schemas that are not flat
	engine func() *engine // judges whatever quick does not accept
}

// New returns a Validator for a tool's input schema. The work is done on first use.
func New(s *schema.Schema) *Validator { return &Validator{schema: s} }

// Unjudged returns why the schema is never enforced, "" if it is. The first call
// compiles the schema. The time for that depends only on its size; other calls wait.
func (v *Validator) Unjudged() string {
	v.once.Do(func() {
		v.judge, v.err = recovered(func() (judge, error) { return compile(v.schema) })
		v.ready.Store(true)
	})
	if v.err != nil {
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

	// Unchecked is why the arguments, or some of them, were not checked, "" if all were.
	Unchecked string
}

// Check checks arguments. They must always be JSON without duplicate keys. The rest stays
// unchecked if the schema cannot be judged, or if ctx ends. If the check would take more than
// maxSteps, only some parts of the schema are checked. A costly check waits until others have
// ended.
func (v *Validator) Check(ctx context.Context, raw []byte) Verdict {
	if err := rawjson.Check(raw); err != nil {
		return Verdict{Problems: []Problem{{Text: err.Error()}}}
	}
	if path := rawjson.DuplicateKey(raw); path != nil { // the upstream may use the other value
		return Verdict{Problems: []Problem{{Path: path, Text: "given twice"}}}
	}
	if why := v.Unjudged(); why != "" {
		return Verdict{Unchecked: why}
	}
	verdict, err := recovered(func() (Verdict, error) { return v.check(ctx, raw) })
	if err != nil {
		verdict.Unchecked = "check: " + err.Error()
	}
	return verdict
}

func (v *Validator) check(ctx context.Context, raw []byte) (Verdict, error) {
	if rawjson.HasLoneSurrogate(raw) {
		return Verdict{}, errSurrogate
	}
	isLong := len(raw) > cheapBytes
	if isLong {
		if err := acquire(ctx); err != nil {
			return Verdict{}, err
		}
		defer release()
	}
	arguments, err := decode(raw, maxArgumentsNodes)
	if err != nil {
		return Verdict{}, err
	}
	engine := v.judge.engine()
	if _, err := countSteps(ctx, engine.rule, arguments, cheapSteps); err == nil {
		return engine.check(ctx, arguments)
	}
	if !isLong {
		if err := acquire(ctx); err != nil {
			return Verdict{}, err
		}
		defer release()
	}
	_, err = countSteps(ctx, engine.rule, arguments, maxSteps)
	switch {
	case err == nil:
		return engine.check(ctx, arguments)
	case errors.Is(err, errTooLong):
		return engine.checkParts(ctx, arguments)
	}
	return Verdict{}, err
}

// acquire waits for a slot. If ctx ends first, it returns the cause.
func acquire(ctx context.Context) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func release() { <-slots }

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
	rules, err := reduce(s)
	if err != nil {
		return judge{}, err
	}
	return judge{quick: newQuick(rules), engine: newEngine(s)}, nil
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
