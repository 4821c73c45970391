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
)

var errTimeout = errors.New("took too long")

// Schema is one tool's input schema. It is safe for concurrent use.
type Schema struct {
	raw   []byte
	limit time.Duration

	once  sync.Once
	judge judge
	ready atomic.Bool // judge is there

	// why is set once the schema is no longer enforced.
	why atomic.Pointer[string]

	// turn is held during a check that might not end: a schema can cost one
	// runaway goroutine, never two.
	turn chan struct{}
}

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
	return &Schema{raw: raw, limit: timeLimit, turn: make(chan struct{}, 1)}
}

// Unjudged says why the schema is not enforced. It is empty while it is.
func (s *Schema) Unjudged() string {
	s.once.Do(func() {
		var err error
		s.judge, err = bounded(s.limit, func() (judge, error) { return compile(s.raw) })
		if err != nil {
			s.giveUp(fmt.Errorf("compile: %w", err))
		}
		s.ready.Store(true)
	})
	if why := s.why.Load(); why != nil {
		return *why
	}
	return ""
}

// Accepts reports whether raw arguments are surely valid, at a glance. If it does
// not, Check says what they are. It never waits: before the first Check it
// accepts nothing.
func (s *Schema) Accepts(raw []byte) bool {
	return s.ready.Load() && s.why.Load() == nil && s.judge.quick.accepts(raw)
}

// Check returns what is wrong with arguments, as Decode returns them: at most
// five problems, none if they are valid or cannot be judged. Arguments are only
// read, but after a timeout they still are when Check has returned.
func (s *Schema) Check(arguments any) []Problem {
	problems := s.All(arguments)
	return problems[:min(len(problems), maxProblems)]
}

// All is Check without the bound of five.
func (s *Schema) All(arguments any) []Problem {
	if s.Unjudged() != "" {
		return nil
	}
	nodes, err := measure(arguments, rawjson.MaxDepth, maxArgumentsNodes)
	if err != nil {
		return nil
	}
	check := func() ([]Problem, error) { return s.judge.check(arguments), nil }
	if s.judge.plain && nodes <= maxInlineNodes {
		problems, err := recovered(check)
		return s.settle(problems, err)
	}
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	if s.Unjudged() != "" {
		return nil
	}
	problems, err := bounded(s.limit, check)
	return s.settle(problems, err)
}

func (s *Schema) settle(problems []Problem, err error) []Problem {
	if err != nil {
		s.giveUp(fmt.Errorf("check: %w", err))
		return nil
	}
	return problems
}

func (s *Schema) giveUp(err error) {
	why := err.Error()
	s.why.Store(&why)
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
	if _, err := measure(document, maxSchemaDepth, maxSchemaNodes); err != nil {
		return judge{}, err
	}
	rules, err := reduce(document)
	if err != nil {
		return judge{}, err
	}
	return judge{quickly(rules.root), library(rules), explainer{rules.root, rules.draft <= 7}, rules.plain}, nil
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
// value and nesting beyond 256 are errors.
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

// looks is how often bounded looks at the clock.
const looks = 10

// bounded runs f on a goroutine of its own and waits for it no longer than
// limit. The libraries take no context: f itself runs on to its end. The limit
// is waited for in parts: a machine that stands still, be it for long, costs f
// no more than two of them.
func bounded[T any](limit time.Duration, f func() (T, error)) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := recovered(f)
		done <- outcome{result, err}
	}()
	tick := time.NewTicker(max(limit/looks, 1))
	defer tick.Stop()
	for range looks {
		select {
		case o := <-done:
			return o.result, o.err
		case <-tick.C:
		}
	}
	var none T
	return none, errTimeout
}

func recovered[T any](f func() (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
