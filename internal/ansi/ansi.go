// Package ansi styles text on terminals.
package ansi

import (
	"os"

	"github.com/mattn/go-isatty"
)

// Style is the escape sequence that starts a style.
type Style string

// The styles.
const (
	Bold   Style = "\x1b[1m"
	Faint  Style = "\x1b[2m"
	Red    Style = "\x1b[31m"
	Green  Style = "\x1b[32m"
	Yellow Style = "\x1b[33m"
	Cyan   Style = "\x1b[36m"
	Gray   Style = "\x1b[90m"
)

const reset = "\x1b[0m"

// Paint styles texts. The zero value leaves them as they are.
type Paint bool

// PaintFor returns the Paint for a stream: a terminal whose user has not set NO_COLOR
// gets styles.
func PaintFor(stream any) Paint { return Paint(IsTerminal(stream) && os.Getenv("NO_COLOR") == "") }

// Text returns a text in a style.
func (p Paint) Text(s Style, text string) string {
	if !p || s == "" || text == "" {
		return text
	}
	return string(s) + text + reset
}

// Append appends texts in a style.
func (p Paint) Append(b []byte, s Style, texts ...string) []byte {
	if p {
		b = append(b, s...)
	}
	for _, text := range texts {
		b = append(b, text...)
	}
	if p {
		b = append(b, reset...)
	}
	return b
}

// IsTerminal reports whether a stream is a terminal that understands escape sequences.
func IsTerminal(stream any) bool {
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb" && understandsEscapes(f.Fd())
}
