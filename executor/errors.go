package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"mcpx/executor/validate"
	"mcpx/internal/jsonrpc"
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
	fmt.Fprintf(&b, "%s(%s)", e.tool.Name, e.tool.Signature())
	return b.String()
}

// Explain is the text of an error for the one who made the call: what went
// wrong, and what to do about it.
func Explain(server string, err error) string {
	var own *jsonrpc.Error
	if !errors.As(err, &own) {
		return err.Error()
	}
	text := fmt.Sprintf("server %q answered with error %d: %s", server, own.Code, own.Message)
	if len(own.Data) > 0 {
		text += "\ndata: " + string(own.Data)
	}
	return text
}

// outcome is the word for what became of a call.
func outcome(err error) string {
	var (
		notFound    *NotFound
		invalid     *Invalid
		unavailable *registry.Unavailable
		lost        *registry.Lost
		timeout     *registry.Timeout
		own         *jsonrpc.Error
	)
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &notFound):
		return "not_found"
	case errors.As(err, &invalid):
		return "invalid"
	case errors.As(err, &unavailable):
		return "unavailable"
	case errors.As(err, &lost):
		return "lost"
	case errors.As(err, &timeout):
		return "timeout"
	case errors.As(err, &own):
		return "error"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "failed"
}
