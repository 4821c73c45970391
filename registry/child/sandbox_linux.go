package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"mcpx/config"
)

// A sandboxed child is started in two steps: mcpx starts itself again as the starter, which
// restricts itself and then executes the server's program. Nothing of the server runs
// without the restrictions, and everything that it starts has them too.

// starterVariable makes a process the starter; its value is a restrictions.
const starterVariable = "MCPX_SANDBOX"

// starterPipe is the file on which the starter reports an error: a text, or the number of
// the system's error if the program could not be executed. It closes when the program is
// executed.
const starterPipe = 3

// restrictions are what a starter applies before it executes a program.
type restrictions struct {
	Program  string
	Folders  []string // may be written
	Files    []string // likewise
	Landlock bool     // the kernel has it
	Network  bool     // sockets are allowed
}

// neededLandlock is the oldest version of Landlock that protects files against every
// change of their contents: the first one that knows truncation (Linux 6.2).
const neededLandlock = 3

// landlockVersion returns the kernel's version of Landlock, 0 if it has none. Tests replace
// it.
var landlockVersion = kernelLandlock

// devices may always be written.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"}

// newSandbox makes the command start in a sandbox, if the upstream has one. The caller calls
// started after cmd.Start, and remove at the end.
func newSandbox(c *config.Upstream, cmd *exec.Cmd) (s *sandbox, err error) {
	s = &sandbox{}
	if c.Sandbox == nil {
		return s, nil
	}
	r := restrictions{Program: cmd.Path, Files: devices, Landlock: true, Network: c.Sandbox.Network}
	if version := landlockVersion(); version < neededLandlock {
		if !c.Sandbox.BestEffort {
			return nil, &Error{Reason: noLandlock(version), IsConfig: true}
		}
		r.Landlock, s.warning = false, noLandlock(version)
	}
	if r.Folders, err = r.writable(c); err != nil {
		return nil, err
	}
	return s, s.prepare(cmd, r, c)
}

func noLandlock(version int) string {
	has := "has no Landlock"
	if version > 0 {
		has = fmt.Sprintf("has only version %d of Landlock", version)
	}
	return fmt.Sprintf(`the sandbox does not work here: the kernel %s, and version %d is needed (Linux 6.2 or later); remove "sandbox", or set "best_effort": true in it`, has, neededLandlock)
}

// writable returns the folders of the config that may be written, and adds the files to r.
func (r *restrictions) writable(c *config.Upstream) (folders []string, err error) {
	home, _ := os.UserHomeDir()
	for _, written := range c.Sandbox.Write {
		path := written
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		if path, err = filepath.Abs(path); err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return nil, &Error{Reason: fmt.Sprintf("sandbox.write: %s does not exist; create it", written), IsConfig: true}
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, &Error{Reason: "sandbox.write: " + err.Error(), IsConfig: true}
		case path == "/" || path == filepath.Clean(home):
			return nil, &Error{Reason: fmt.Sprintf(`sandbox.write: %s is %s, which is no sandbox; set "cwd", or name a smaller folder`, written, path), IsConfig: true}
		case info.IsDir():
			folders = append(folders, path)
		default:
			r.Files = append(slices.Clip(r.Files), path)
		}
	}
	return folders, nil
}

// sandbox is the sandbox of one child. The zero value has no restrictions.
type sandbox struct {
	warning string   // why it does not protect; empty if it does
	temp    string   // the child's own folder for temporary files
	ours    *os.File // the ends of the starter's pipe
	starter *os.File
}

// prepare makes the command start the starter.
func (s *sandbox) prepare(cmd *exec.Cmd, r restrictions, c *config.Upstream) (err error) {
	if s.temp, err = os.MkdirTemp("", "mcpx-sandbox-"); err != nil {
		return &Error{Reason: "the sandbox could not be created: " + err.Error()}
	}
	r.Folders = append(r.Folders, s.temp)
	if s.ours, s.starter, err = os.Pipe(); err != nil {
		s.remove()
		return &Error{Reason: "the sandbox could not be created: " + err.Error()}
	}
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		if _, isSet := c.Env[name]; !isSet {
			cmd.Env = append(cmd.Env, name+"="+s.temp) // the last one counts
		}
	}
	value, _ := json.Marshal(r) // cannot fail: strings and booleans
	cmd.Env = append(cmd.Env, starterVariable+"="+string(value))
	cmd.Path = "/proc/self/exe"
	cmd.ExtraFiles = []*os.File{s.starter}
	return nil
}

// started waits until the starter has executed the program, and returns its error. An
// error of the program is a syscall.Errno.
func (s *sandbox) started() error {
	if s.ours == nil {
		return nil
	}
	_ = s.starter.Close()
	const most = 4 << 10
	text, err := io.ReadAll(io.LimitReader(s.ours, most))
	_ = s.ours.Close()
	number, notNumber := strconv.Atoi(string(text))
	switch {
	case err != nil:
		return &Error{Reason: "the sandbox could not be created: " + err.Error()}
	case len(text) == 0:
		return nil
	case notNumber != nil:
		return &Error{Reason: string(text)}
	}
	return syscall.Errno(number)
}

// remove removes the child's temporary files.
func (s *sandbox) remove() {
	if s.temp != "" {
		_ = os.RemoveAll(s.temp)
	}
}

// SandboxIfAsked turns the process into the program of a sandboxed child if it was started
// as its starter, and then does not return.
func SandboxIfAsked() {
	value, isStarter := os.LookupEnv(starterVariable)
	if !isStarter {
		return
	}
	_ = os.Unsetenv(starterVariable)
	syscall.CloseOnExec(starterPipe)
	runtime.LockOSThread() // the restrictions are of one thread, which executes the program
	var r restrictions
	err := json.Unmarshal([]byte(value), &r)
	if err == nil {
		err = r.apply()
	}
	report := ""
	if err != nil {
		report = "the sandbox could not be created: " + err.Error()
	} else if number, ok := errors.AsType[syscall.Errno](syscall.Exec(r.Program, os.Args, os.Environ())); ok {
		report = strconv.Itoa(int(number))
	}
	_, _ = os.NewFile(starterPipe, "starter").WriteString(report)
	os.Exit(1)
}

// apply restricts the process: it may read everything and write little, and it cannot change
// other processes.
func (r *restrictions) apply() error {
	if r.Landlock {
		if err := restrictFiles(r.Folders, r.Files); err != nil {
			return err
		}
	}
	return restrictCalls(r.Network)
}
