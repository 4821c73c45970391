package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"mcpx/executor/listing"
	"mcpx/executor/validate"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/rpc"
	"mcpx/internal/schema"
	"mcpx/internal/signature"
	"mcpx/registry/lists"
	"mcpx/registry/live"
	"mcpx/registry/upstream"
)

// Invalid is returned for arguments that do not fit the tool's schema. The call was not
// sent.
type Invalid struct {
	Problems []validate.Problem
	tool     *lists.Tool
}

func (e *Invalid) Error() string {
	var b strings.Builder
	for _, p := range e.Problems {
		b.WriteString(p.String())
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s(%s)", listing.Name(e.tool.Name), e.signature())
	return b.String()
}

// signature returns the part of the tool's signature that concerns the problems: the
// failing parameters, and those that a caller probably meant. It is the whole signature
// if a problem concerns no single parameter.
func (e *Invalid) signature() string {
	known := validatorOf(e.tool).properties
	var names []string
	for _, p := range e.Problems {
		if len(p.Path) == 0 {
			return e.tool.Signature()
		}
		name := p.Path[0]
		if !known[name] {
			name = cmp.Or(near(name, known), name)
		}
		names = append(names, name)
	}
	return signature.Some(schema.New(e.tool.ShownSchema()), names)
}

// badCall is returned for a call that has a key twice, a select that cannot be read, or a
// reference that leads nowhere. The call was not sent.
type badCall struct{ text string }

func (e *badCall) Error() string { return e.text }

// UpstreamError is returned for a call to which the upstream responded with an error.
type UpstreamError struct {
	Server string
	Err    *rpc.Error
	notes  []string // as in Call
}

// maxErrorPart bounds message and data of an upstream's error.
const maxErrorPart = 8 << 10

func (e *UpstreamError) Error() string {
	text := fmt.Sprintf("server %q answered with error %d: %s", e.Server, e.Err.Code, plain.Cut(plain.Line(e.Err.Message), maxErrorPart))
	if len(e.Err.Data) > 0 {
		text += "\ndata: " + plain.Cut(plain.Line(string(rawjson.Compact(e.Err.Data))), maxErrorPart)
	}
	return strings.Join(append([]string{text}, e.notes...), "\n")
}

// Unwrap returns the upstream's own error.
func (e *UpstreamError) Unwrap() error { return e.Err }

// outcome returns the Outcome of an Event: "ok", or the kind of an error.
func outcome(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "ok"
	case is[*NotFound](err): // no upstream was called, so a cancellation changes nothing
		return "not_found"
	case is[*Invalid](err), is[*badCall](err): // likewise
		return "invalid"
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "timeout"
	case ctx.Err() != nil:
		return "cancelled"
	case is[*live.Unavailable](err):
		return "unavailable"
	case is[*upstream.Lost](err):
		return "lost"
	case is[*upstream.Timeout](err):
		return "timeout"
	case is[*rpc.Error](err):
		return "error"
	}
	return "failed"
}

// is reports whether an error is or wraps one of a type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
