package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mcpx/executor/validate"
	"mcpx/internal/jsonrpc"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/registry"
)

// Invalid is returned for arguments that do not fit the tool's schema. Nothing
// was sent.
type Invalid struct {
	Problems []validate.Problem
	tool     *registry.Tool
}

func (e *Invalid) Error() string {
	var b strings.Builder
	for _, p := range e.Problems {
		b.WriteString(p.String())
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s(%s)", shown(e.tool.Name), e.tool.Signature())
	return b.String()
}

// duplicateKey is returned for a call that gives a key twice.
type duplicateKey struct{ key string }

func (e *duplicateKey) Error() string { return fmt.Sprintf("%q is given twice", e.key) }

// Refused is returned for a call that the upstream answered with an error.
type Refused struct {
	Server string
	Own    *jsonrpc.Error
}

// refusedBytes bounds each part of an upstream's error.
const refusedBytes = 8 << 10

func (e *Refused) Error() string {
	text := fmt.Sprintf("server %q answered with error %d: %s", e.Server, e.Own.Code, plain.Cut(plain.Line(e.Own.Message), refusedBytes))
	if len(e.Own.Data) > 0 {
		text += "\ndata: " + plain.Cut(plain.Line(string(rawjson.Compact(e.Own.Data))), refusedBytes)
	}
	return text
}

// Unwrap returns the upstream's own error.
func (e *Refused) Unwrap() error { return e.Own }

// outcome returns the word for what became of a call.
func outcome(ctx context.Context, err error) string {
	if err == nil {
		return "ok"
	}
	return failed(ctx, err)
}

func failed(ctx context.Context, err error) string {
	var (
		notFound    *NotFound
		invalid     *Invalid
		duplicate   *duplicateKey
		unavailable *registry.Unavailable
		lost        *registry.Lost
		timeout     *registry.Timeout
		own         *jsonrpc.Error
	)
	switch {
	case errors.As(err, &notFound): // no upstream was called, so a cancellation changes nothing
		return "not_found"
	case errors.As(err, &invalid), errors.As(err, &duplicate): // likewise
		return "invalid"
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "timeout"
	case ctx.Err() != nil:
		return "cancelled"
	case errors.As(err, &unavailable):
		return "unavailable"
	case errors.As(err, &lost):
		return "lost"
	case errors.As(err, &timeout):
		return "timeout"
	case errors.As(err, &own):
		return "error"
	}
	return "failed"
}
