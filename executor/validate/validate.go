// Package validate checks a tool's arguments against the tool's JSON Schema before
// a call is sent.
//
// A valid call must never be refused, so two checks must agree before one is. The
// schema is first reduced to the keywords that are judged, which can only make it
// accept more (reduce.go). gojsonschema then says yes or no, to the same rules in
// the words of draft 7 (engine.go). After a no, explain.go looks for the reasons;
// if it finds none, the call passes. For the few schemas that draft 7 cannot
// express, explain.go decides alone.
package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
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
	errTimeout = errors.New("took too long")
	errBusy    = errors.New("earlier checks that took too long are still running")
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

	skipped atomic.Pointer[string] // why the first unchecked call passed

	// A costly check cannot be stopped, so a schema has one at a time. Its caller
	// holds turn while it waits.
	turn    chan struct{}
	runaway chan struct{} // guarded by turn: closed when the last overdue check ends
}

// judge is a compiled schema.
type judge struct {
	quick  *quick         // nil for most schemas that are not flat
	cheap  bool           // a check takes at most size of schema × size of arguments
	engine func() *engine // judges whatever quick does not accept
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

// Skipped returns why a call passed unchecked although the schema is enforced, ""
// if none did.
func (v *Validator) Skipped() string {
	if why := v.skipped.Load(); why != nil {
		return *why
	}
	return ""
}

func (v *Validator) skip(during string, err error) {
	why := during + ": " + err.Error()
	v.skipped.CompareAndSwap(nil, &why)
}

// Accepts reports whether raw arguments are surely valid, at a glance. If it returns
// false, call Check. It never waits: before the schema is compiled it accepts
// nothing.
func (v *Validator) Accepts(raw []byte) bool {
	return v.ready.Load() && v.judge.quick.accepts(raw)
}

// Check returns what is wrong with arguments, as Decode returns them: nothing if
// they are valid, cannot be judged, or take too long to judge. It only reads the
// arguments, but after a timeout it still reads them when it has returned.
func (v *Validator) Check(arguments any) []Problem {
	if v.Unjudged() != "" {
		return nil
	}
	if !v.ready.Load() {
		v.skip("compile", errTimeout)
		return nil
	}
	nodes, err := measure(arguments, rawjson.MaxDepth, maxArgumentsNodes)
	if err != nil {
		return nil
	}
	run := v.checkWithin
	if v.judge.cheap && nodes <= maxInlineNodes {
		run = recovered[[]Problem]
	}
	problems, err := run(func() ([]Problem, error) { return v.judge.engine().check(arguments), nil })
	if err != nil {
		v.skip("check", err)
		return nil
	}
	return problems
}

// checkWithin runs a check that might take long and waits no longer than the limit.
// gojsonschema takes no context, so the check itself runs to its end. Until then,
// no other check starts for this schema: errBusy.
func (v *Validator) checkWithin(check func() ([]Problem, error)) ([]Problem, error) {
	v.turn <- struct{}{}
	defer func() { <-v.turn }()
	if v.runaway != nil && !isClosed(v.runaway) || overdue.Load() >= maxOverdue {
		return nil, errBusy
	}
	var problems []Problem
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		problems, err = recovered(check)
	}()
	if wait(done, v.limit) {
		return problems, err
	}
	v.runaway = done
	overdue.Add(1)
	go func() {
		<-done
		overdue.Add(-1)
	}()
	return nil, errTimeout
}

func compile(s *schema.Schema) (judge, error) {
	root, err := s.Root()
	switch {
	case err != nil:
		return judge{}, err
	case rawjson.HasLoneSurrogate(root.Raw()): // decoding makes different names equal
		return judge{}, errors.New("half of a surrogate pair")
	case root.Tree().Depth() > maxSchemaDepth+1:
		return judge{}, errDeep
	case root.Tree().Len() > maxSchemaNodes:
		return judge{}, errMany
	}
	rules, cheap, err := reduce(s)
	if err != nil {
		return judge{}, err
	}
	return judge{quick: newQuick(rules), cheap: cheap, engine: newEngine(s)}, nil
}

// Decode decodes one JSON value, with numbers as json.Number. It fails for more than
// one value and for nesting beyond 256. Half of a surrogate pair becomes U+FFFD.
func Decode(raw []byte) (any, error) {
	if err := rawjson.Check(raw); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
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

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
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

// Numbers are limited to a size at which exact arithmetic is cheap, and to the range
// of float64: beyond it gojsonschema panics.
const (
	maxDigits   = 400
	maxExponent = len("e-999")
)

var (
	errDeep   = errors.New("nested too deep")
	errMany   = errors.New("too many values")
	errNumber = errors.New("a number out of range")
)

// measure counts the values in v. It fails if v is deeper or larger than allowed, or
// has a type that Decode does not produce.
func measure(v any, depth, limit int) (nodes int, err error) {
	if depth < 0 {
		return 0, errDeep
	}
	if limit < 1 {
		return 0, errMany
	}
	nodes = 1
	inside := func(child any) error {
		n, err := measure(child, depth-1, limit-nodes)
		nodes += n
		return err
	}
	switch v := v.(type) {
	case nil, bool, string:
	case json.Number:
		return nodes, checkNumber(v.String())
	case []any:
		for _, child := range v {
			if err := inside(child); err != nil {
				return nodes, err
			}
		}
	case map[string]any:
		for _, child := range v {
			if err := inside(child); err != nil {
				return nodes, err
			}
		}
	default:
		return nodes, fmt.Errorf("a %T", v)
	}
	return nodes, nil
}

// IsNumber reports whether a text is exactly a JSON number, and one that Check can
// judge.
func IsNumber(text string) bool {
	return text != "" && strings.Contains("-0123456789", text[:1]) && strings.Contains("0123456789", text[len(text)-1:]) &&
		rawjson.Check([]byte(text)) == nil && checkNumber(text) == nil
}

func checkNumber(n string) error {
	_, err := strconv.ParseFloat(n, 64)
	exponent := strings.IndexAny(n, "eE")
	if err != nil || len(n) > maxDigits || exponent >= 0 && len(n)-exponent > maxExponent {
		return errNumber
	}
	return nil
}
