// Package child runs the processes of stdio upstreams: it starts each in a group
// of its own, keeps the end of its stderr, and leaves no descendant behind when it
// stops. A watcher process does the last part if mcpx is killed.
package child

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"mcpx/config"
)

// Process is a child and everything it starts.
type Process struct {
	Exited  <-chan struct{} // closed when the child itself has ended
	Warning string          // why its sandbox does not protect; empty if it does, or there is none

	cmd     *exec.Cmd
	sandbox *sandbox
	tree    tree // the child and its descendants, as the system knows them
	watcher *Watcher
}

// Error is returned for a child that could not be started.
type Error struct {
	Reason   string
	IsConfig bool // the config is wrong, not the program
}

func (e *Error) Error() string { return e.Reason }

// How long each step of a stop may take.
const (
	stopByStdin  = 2 * time.Second // after its stdin was closed
	stopBySignal = 2 * time.Second // after SIGTERM
	stopPoll     = 10 * time.Millisecond
)

// markVariable marks every process of a tree in its environment, so that
// descendants that left the process group are found again.
const markVariable = "MCPX_CHILD"

// Start starts the command of an upstream with files as its stdin, stdout and
// stderr. The error is an *Error.
func Start(c *config.Upstream, w *Watcher, files [3]*os.File) (*Process, error) {
	path, err := lookPath(c)
	if err != nil {
		return nil, err
	}
	id := w.mark() + "." + rand.Text()
	cmd := exec.Command(path, c.Args...)
	cmd.Env = environment(c, id)
	cmd.Dir = c.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
	cmd.SysProcAttr = ownGroup()
	s, err := newSandbox(c, cmd)
	if err != nil {
		return nil, err
	}
	if err := run(cmd, s); err != nil {
		s.remove()
		return nil, startFailure(c, err)
	}
	w.add(cmd.Process.Pid)
	exited := make(chan struct{})
	p := &Process{Exited: exited, Warning: s.warning, cmd: cmd, sandbox: s, tree: newTree(cmd.Process, id), watcher: w}
	go func() {
		_ = cmd.Wait() // Status reports its result
		close(exited)
	}()
	return p, nil
}

// run starts the command and waits until its sandbox is complete.
func run(cmd *exec.Cmd, s *sandbox) error {
	err := cmd.Start()
	if failed := s.started(); err == nil && failed != nil {
		_ = cmd.Wait()
		return failed
	}
	return err
}

// FindDescendants records the descendants of the child. It is called before the
// child is stopped, while parent IDs still connect them to it.
func (p *Process) FindDescendants() { p.tree.remember() }

// Stop ends the child and all its descendants, and waits for that. The caller closes
// stdin as soon as everything queued is written. If the child does not exit then, Stop
// calls closeStdin and sends SIGTERM, and at last SIGKILL.
func (p *Process) Stop(closeStdin func()) {
	if !p.waitGone(stopByStdin) {
		closeStdin() // the child has not even read what was queued
		p.tree.terminate()
		p.waitGone(stopBySignal)
	}
	p.tree.kill()
	_ = p.cmd.Process.Kill() // in case the tree could not be created
	<-p.Exited
	p.watcher.remove(p.cmd.Process.Pid)
	p.sandbox.remove()
}

// waitGone waits until no process of the tree is left; false if time is up.
func (p *Process) waitGone(within time.Duration) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	select {
	case <-p.Exited:
	case <-deadline.C:
		return false
	}
	poll := time.NewTicker(stopPoll)
	defer poll.Stop()
	for p.tree.alive() {
		select {
		case <-poll.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}

// Status returns how the child ended. It may be called after Exited is closed.
func (p *Process) Status() string {
	state := p.cmd.ProcessState
	if state.Exited() {
		return fmt.Sprintf("exited with status %d", state.ExitCode())
	}
	return "ended by " + state.String()
}

// inherited lists the variables that a child gets from mcpx's environment. It gets no
// others, unless they are in its config, since they may be secrets of another upstream.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
	// Windows
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE",
	"PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// inheritedPrefixes lists prefixes of further variables to inherit.
var inheritedPrefixes = []string{"LC_", "XDG_"}

// environment returns the environment of a child.
func environment(c *config.Upstream, id string) []string {
	env := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		known := c.InheritAll || slices.Contains(inherited, name) || runtime.GOOS == "windows" && slices.Contains(inherited, strings.ToUpper(name))
		if known || slices.ContainsFunc(inheritedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			env[name] = value
		}
	}
	maps.Copy(env, c.Env)
	env[markVariable] = id
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// lookPath finds the program, in the child's own PATH if it has one.
func lookPath(c *config.Upstream) (string, error) {
	if strings.ContainsRune(c.Command, filepath.Separator) || strings.ContainsRune(c.Command, '/') {
		return c.Command, nil
	}
	if own, ok := c.Env["PATH"]; ok && runtime.GOOS != "windows" {
		for _, dir := range filepath.SplitList(own) {
			path := filepath.Join(dir, c.Command)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return path, nil
			}
		}
		return "", notFound(c.Command, "was not found in the PATH of its env; install it, or give its full path")
	}
	path, err := exec.LookPath(c.Command)
	if err != nil {
		return "", notFound(c.Command, "was not found in PATH; install it, or give its full path")
	}
	return path, nil
}

// notFound returns the error for a missing program. If the command contains arguments,
// the error says so.
func notFound(command, problem string) error {
	if program, more := config.CommandWords(command); more {
		problem = fmt.Sprintf(`does not exist: it is the program alone; move the words after %q to "args"`, program)
	}
	return &Error{Reason: fmt.Sprintf("command %q %s", command, problem)}
}

// startFailure explains why a program could not be started and what to do.
func startFailure(c *config.Upstream, err error) error {
	if e := new(Error); errors.As(err, &e) {
		return e
	}
	if info, statErr := os.Stat(c.Dir); c.Dir != "" && (statErr != nil || !info.IsDir()) {
		return &Error{Reason: fmt.Sprintf("cwd %q is not a folder; check its path", c.Dir), IsConfig: true}
	}
	path := c.Command
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	info, statErr := os.Stat(path)
	switch {
	case statErr == nil && info.IsDir():
		return &Error{Reason: fmt.Sprintf("command %q is a folder, not a program; give the path of the program in it", c.Command)}
	case errors.Is(err, fs.ErrNotExist):
		return notFound(c.Command, "does not exist; check its path")
	case errors.Is(err, fs.ErrPermission):
		return &Error{Reason: fmt.Sprintf("command %q may not be executed; check its permissions", c.Command)}
	}
	return &Error{Reason: fmt.Sprintf("command %q could not be started: %v", c.Command, err)}
}
