package cli

import (
	"errors"
	"fmt"
)

// hinted is an error with advice. It is printed as two lines: what happened, and
// what to do.
type hinted struct {
	error
	hint string
}

func (e hinted) Unwrap() error { return e.error }

// withHint adds advice to an error.
func withHint(err error, format string, args ...any) error {
	return hinted{err, fmt.Sprintf(format, args...)}
}

// hintOf returns the advice of an error, "" if it has none.
func hintOf(err error) string {
	var h hinted
	if errors.As(err, &h) {
		return h.hint
	}
	return ""
}
