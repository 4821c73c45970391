package cli

import (
	"context"
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"golang.org/x/term"

	"mcpx/config"
)

// terminal is where a command reads and writes, and who looks at it.
type terminal struct {
	ctx     context.Context
	release func() // a further signal then ends the process at once
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	http    bool // the front to serve if none is named
	args    []string

	adhoc *config.Config // of a server that the command line gives; nil if it is in a config
}

// looksAt reports whether a person looks at what is written there, on something
// that understands escapes.
func looksAt(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb" && understandsEscapes(f)
}

// person reports whether a person reads stdout.
func (t *terminal) person() bool { return looksAt(t.stdout) }

// width is the number of columns of a terminal, 0 for anything else.
func width(stream any) int {
	f, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// colour is how a text looks on a terminal.
type colour string

// The colours, by what they say.
const (
	bold   colour = "\x1b[1m"
	faint  colour = "\x1b[2m"
	good   colour = "\x1b[32m"
	bad    colour = "\x1b[31m"
	named  colour = "\x1b[36m"
	doubt  colour = "\x1b[33m"
	normal        = "\x1b[0m"
)

// colours paints texts, or leaves them as they are.
type colours bool

// colours are for a person who has not asked for none.
func (t *terminal) colours() colours { return colours(t.person() && os.Getenv("NO_COLOR") == "") }

func (c colours) paint(with colour, text string) string {
	if !c || with == "" || text == "" {
		return text
	}
	return string(with) + text + normal
}

// read reads all of stdin, unless the command is interrupted first.
func (t *terminal) read() ([]byte, error) {
	type outcome struct {
		data []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		data, err := io.ReadAll(t.stdin)
		done <- outcome{data, err}
	}()
	select {
	case o := <-done:
		return o.data, o.err
	case <-t.ctx.Done():
		return nil, errInterrupted
	}
}
