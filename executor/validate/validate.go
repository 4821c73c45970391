// Package validate judges a tool's arguments against the tool's JSON Schema
// before a call is sent.
//
// A valid call must never be refused, so a refusal takes two opinions. The
// schema is first reduced to the keywords that are judged, which only ever
// makes it accept more (reduce.go). gojsonschema then says yes or no, to the
// same schema in the words of draft 7 (older.go). Only after a no does explain.go
// look for the reasons; where it finds none, the call passes. Its opinion alone
// counts for the few schemas that draft 7 cannot express.
package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/rawjson"
)

const (
	timeLimit = 250 * time.Millisecond // for compiling, and for one check

	maxSchemaBytes    = 512 << 10
	maxSchemaDepth    = 100
	maxSchemaNodes    = 20_000
	maxArgumentsNodes = 200_000
	maxInlineNodes    = 2_000 // schema and arguments this small need no timer

	// maxOverdue is how many checks may run on after their limit, over all
	// schemas. While so many do, no further costly check starts.
	maxOverdue = 4
)

var (
	errTimeout = errors.New("took too long")
	errBusy    = errors.New("earlier checks that took too long are still running")
)

// overdue counts the checks that run on after their limit.
var overdue atomic.Int32

// Schema is one tool's input schema. It is safe for concurrent use.
type Schema struct {
	raw   []byte
	limit time.Duration

	once     sync.Once
	compiled chan struct{} // closed when judge and err are set
	judge    judge
	err      error       // why the schema cannot be judged
	ready    atomic.Bool // compiled is closed

	skipped atomic.Pointer[string] // why a call passed unchecked for the first time

	// A costly check cannot be stopped. Its caller holds turn while it waits;
	// state says whether the check still runs after that. So a schema has one
	// costly check at a time.
	turn  chan struct{}
	state atomic.Int32
}

// The states of a schema's costly check.
const (
	idle int32 = iota
	running
	late // it runs, and its caller has stopped waiting
)

// judge is a compiled schema.
type judge struct {
	quick   *quick                   // nil for most schemas that are not flat
	accepts func(arguments any) bool // the library; nil: it cannot judge this schema
	explain explainer
	plain   bool // a check takes at most size of schema × size of arguments
}

// Compile makes a Schema of a tool's inputSchema, empty if it has none. The
// work is done on first use. The bytes are kept and must not change.
func Compile(raw []byte) *Schema {
	return &Schema{raw: raw, limit: timeLimit, compiled: make(chan struct{}), turn: make(chan struct{}, 1)}
}

// Unjudged returns why the schema is never enforced, "" if it is. The first call
// compiles the schema and waits for that no longer than the limit. A schema that
// takes longer is enforced once it is compiled.
func (s *Schema) Unjudged() string {
	s.once.Do(func() {
		go func() {
			defer close(s.compiled)
			s.judge, s.err = recovered(func() (judge, error) { return compile(s.raw) })
			s.ready.Store(true)
		}()
		wait(s.compiled, s.limit)
	})
	if s.ready.Load() && s.err != nil {
		return "compile: " + s.err.Error()
	}
	return ""
}

// Skipped returns why a call passed unchecked for the first time although the
// schema is enforced, "" if none did.
func (s *Schema) Skipped() string {
	if why := s.skipped.Load(); why != nil {
		return *why
	}
	return ""
}

func (s *Schema) skip(during string, err error) {
	why := during + ": " + err.Error()
	s.skipped.CompareAndSwap(nil, &why)
}

// Accepts reports whether raw arguments are surely valid, at a glance. If it does
// not, Check says what they are. It never waits: before the first Check it
// accepts nothing.
func (s *Schema) Accepts(raw []byte) bool {
	return s.ready.Load() && s.judge.quick.accepts(raw)
}

// Check returns what is wrong with arguments, as Decode returns them: nothing if
// they are valid, cannot be judged, or take too long to judge. Arguments are only
// read, but after a timeout they still are when Check has returned.
func (s *Schema) Check(arguments any) []Problem {
	if s.Unjudged() != "" {
		return nil
	}
	if !s.ready.Load() {
		s.skip("compile", errTimeout)
		return nil
	}
	nodes, err := measure(arguments, rawjson.MaxDepth, maxArgumentsNodes)
	if err != nil {
		return nil
	}
	run := s.checkWithin
	if s.judge.plain && nodes <= maxInlineNodes {
		run = recovered[[]Problem]
	}
	problems, err := run(func() ([]Problem, error) { return s.judge.check(arguments), nil })
	if err != nil {
		s.skip("check", err)
		return nil
	}
	return problems
}

// checkWithin runs a check that might take long and waits for it no longer than
// the limit. The libraries take no context, so the check itself runs on to its
// end. Until then no other starts for this schema: errBusy.
func (s *Schema) checkWithin(check func() ([]Problem, error)) ([]Problem, error) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.state.Load() != idle || overdue.Load() >= maxOverdue {
		return nil, errBusy
	}
	var problems []Problem
	var err error
	done := make(chan struct{})
	s.state.Store(running)
	go func() {
		defer close(done)
		problems, err = recovered(check)
		if s.state.Swap(idle) == late {
			overdue.Add(-1)
		}
	}()
	if wait(done, s.limit) {
		return problems, err
	}
	if s.state.CompareAndSwap(running, late) {
		overdue.Add(1)
	}
	return nil, errTimeout
}

func (j judge) check(arguments any) []Problem {
	if j.accepts != nil && j.accepts(arguments) {
		return nil
	}
	return pick(j.explain.find(j.explain.root, arguments, nil))
}

func compile(raw []byte) (judge, error) {
	if len(raw) > maxSchemaBytes {
		return judge{}, fmt.Errorf("larger than %d KB", maxSchemaBytes>>10)
	}
	if rawjson.IsNull(raw) {
		raw = []byte("true")
	}
	document, err := Decode(raw)
	if err != nil {
		return judge{}, err
	}
	if rawjson.HasLoneSurrogate(raw) { // Decode makes different names equal then
		return judge{}, errors.New("half of a surrogate pair")
	}
	if _, err := measure(document, maxSchemaDepth, maxSchemaNodes); err != nil {
		return judge{}, err
	}
	rules, err := reduce(document)
	if err != nil {
		return judge{}, err
	}
	return judge{
		quick:   quickly(rules.root),
		accepts: library(rules),
		explain: explainer{root: rules.root, patterns: rules.patterns, hiding: rules.draft <= 7},
		plain:   rules.plain,
	}, nil
}

// library compiles the rules with gojsonschema; nil if that cannot judge them.
func library(rules reduced) func(arguments any) bool {
	root, ok := older(rules.root)
	if !ok {
		return nil
	}
	accepts, err := compileGojsonschema(root)
	if err != nil { // it refuses some that are legal, such as minLength > maxLength
		return nil
	}
	return accepts
}

// Decode decodes one JSON value, its numbers as json.Number. Anything after the
// value and nesting beyond 256 are errors. Half of a surrogate pair becomes
// U+FFFD.
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

// looks is how often wait looks at the clock.
const looks = 10

// wait waits until done is closed, but no longer than limit, and reports whether it
// was closed. It waits in parts: when the whole machine stops for a while, no more
// than two parts pass.
func wait(done <-chan struct{}, limit time.Duration) bool {
	tick := time.NewTicker(max(limit/looks, 1))
	defer tick.Stop()
	for range looks {
		select {
		case <-done:
			return true
		case <-tick.C:
		}
	}
	return false
}

func recovered[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
