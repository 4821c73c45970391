package registry

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

// process is a child and everything it starts. The life of the protocol is the
// link's business.
type process struct {
	cmd     *exec.Cmd
	tree    tree          // how the system knows the child and its descendants
	exited  chan struct{} // closed when the child itself has ended
	watcher *Watcher
}

// How long each step of a stop may take.
const (
	stopByStdin  = 2 * time.Second // after its stdin was closed
	stopBySignal = 2 * time.Second // after SIGTERM
	stopPoll     = 10 * time.Millisecond
)

// markVariable marks every process of a tree in its environment, so that
// descendants that left the process group are found again.
const markVariable = "MCPX_CHILD"

func startProcess(c *config.Upstream, w *Watcher, files [3]*os.File) (*process, error) {
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
	if err := cmd.Start(); err != nil {
		return nil, startFailure(c, err)
	}
	p := &process{cmd: cmd, tree: newTree(cmd.Process, id), exited: make(chan struct{}), watcher: w}
	w.add(cmd.Process.Pid)
	go func() {
		_ = cmd.Wait() // status has what it says
		close(p.exited)
	}()
	return p, nil
}

// stop ends the child and all its descendants: first gently, its stdin being
// closed already, then with signals. It returns when none is left.
func (p *process) stop(closeStdin func()) {
	if !p.gone(stopByStdin) {
		closeStdin() // the child did not even read what was queued for it
		p.tree.terminate()
		p.gone(stopBySignal)
	}
	p.tree.kill()
	_ = p.cmd.Process.Kill() // where it has no tree
	<-p.exited
	p.watcher.remove(p.cmd.Process.Pid)
}

// gone waits until nothing of the tree is left, false if time is up.
func (p *process) gone(within time.Duration) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	select {
	case <-p.exited:
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

// status says how the child ended.
func (p *process) status() string {
	state := p.cmd.ProcessState
	if state.Exited() {
		return fmt.Sprintf("exited with status %d", state.ExitCode())
	}
	return "ended by " + state.String()
}

// inherited are the variables that a child gets from mcpx's own environment.
// Everything else it needs is in its config: mcpx's environment may hold what
// is meant for another upstream.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TZ", "TMPDIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
	// Windows
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE",
	"PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// inheritedPrefixes stand for families of such variables.
var inheritedPrefixes = []string{"LC_", "XDG_"}

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

// notFound is for a program that is not there, and above all for one that is
// written together with its arguments.
func notFound(command, problem string) error {
	if program, more := config.CommandWords(command); more {
		problem = fmt.Sprintf(`does not exist: it is the program alone; move the words after %q to "args"`, program)
	}
	return &failure{cause: CauseCommand, reason: fmt.Sprintf("command %q %s", command, problem)}
}

// startFailure says what to do about a program that could not be started.
func startFailure(c *config.Upstream, err error) error {
	if info, statErr := os.Stat(c.Dir); c.Dir != "" && (statErr != nil || !info.IsDir()) {
		return &failure{cause: CauseConfig, reason: fmt.Sprintf("cwd %q is not a folder; check its path", c.Dir)}
	}
	path := c.Command
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	info, statErr := os.Stat(path)
	switch {
	case statErr == nil && info.IsDir():
		return &failure{cause: CauseCommand, reason: fmt.Sprintf("command %q is a folder, not a program; give the path of the program in it", c.Command)}
	case errors.Is(err, fs.ErrNotExist):
		return notFound(c.Command, "does not exist; check its path")
	case errors.Is(err, fs.ErrPermission):
		return &failure{cause: CauseCommand, reason: fmt.Sprintf("command %q may not be executed; check its permissions", c.Command)}
	}
	return &failure{cause: CauseCommand, reason: fmt.Sprintf("command %q could not be started: %v", c.Command, err)}
}
