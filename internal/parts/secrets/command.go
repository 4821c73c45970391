package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mcpx/config"
	"mcpx/internal/plain"
)

// commandTime limits a command.
const commandTime = 10 * time.Second

// killTime is how long the pipes of a command that was killed may stay open: a descendant
// may hold them.
const killTime = time.Second

// stderrBytes is how much of a command's stderr is kept for its error.
const stderrBytes = 4 << 10

// Run runs a command in a folder, without a shell, and returns what it prints, without the
// last line break. The command has mcpx's own environment and no stdin. It is killed after
// 10 seconds, or if it prints more than a secret can have.
func Run(ctx context.Context, words []string, folder string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTime, fmt.Errorf("it did not end within %s", commandTime))
	defer cancel()
	name := filepath.Base(words[0])
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.WaitDelay = folder, killTime
	killGroup(cmd)
	stdout, stderr := &limited{most: config.MaxSecret, full: cancel}, &limited{most: stderrBytes}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	switch {
	case stdout.isFull:
		return "", fmt.Errorf("%s printed more than %d KiB", name, config.MaxSecret>>10)
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: %w", name, context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%s was not found in PATH; install it, or give its full path", name)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // a process that it left running, such as an agent, holds the pipe
		return "", fmt.Errorf("%s failed: %w%s", name, err, stderr.lastLine())
	}
	value := plain.WithoutLineBreak(stdout.kept.String())
	if value == "" {
		return "", fmt.Errorf("%s printed nothing", name)
	}
	return value, nil
}

// limited keeps the first bytes that are written to it.
type limited struct {
	kept   bytes.Buffer
	most   int
	full   func() // called when more than most is written; may be nil
	isFull bool
}

// Write never fails, so that the command can go on.
func (l *limited) Write(p []byte) (int, error) {
	room := l.most - l.kept.Len()
	if len(p) > room {
		l.isFull = true
		if l.full != nil {
			l.full()
		}
	}
	_, _ = l.kept.Write(p[:min(len(p), room)])
	return len(p), nil
}

// lastLine returns the last line for an error message, "" if there is none.
func (l *limited) lastLine() string {
	const most = 200
	lines := strings.Split(strings.TrimSpace(l.kept.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + plain.Cut(plain.Line(last), most)
	}
	return ""
}
