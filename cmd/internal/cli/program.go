package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"mcpx/internal/plain"
)

// ownProgram returns the full path of mcpx as it was started: through a symbolic link
// if there is one, since that stays when mcpx is updated.
func ownProgram() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	if temporary(program) {
		return "", usageError{withHint(errors.New("this mcpx is temporary: go run deletes it"), "run go install ./cmd/... first, then mcpx install")}
	}
	if started, err := exec.LookPath(os.Args[0]); err == nil {
		if started, err = filepath.Abs(started); err == nil && sameFile(started, program) {
			return started, nil
		}
	}
	return program, nil
}

// programName returns how a person starts this program.
func programName() string {
	self, err := os.Executable()
	if err != nil {
		return "mcpx"
	}
	name := strings.TrimSuffix(filepath.Base(self), ".exe")
	if temporary(self) {
		if _, err := os.Stat(filepath.Join("cmd", name)); err == nil {
			return "go run ./cmd/" + name
		}
		return "go run mcpx/cmd/" + name
	}
	if found, err := exec.LookPath(name); err == nil && sameFile(found, self) {
		return name
	}
	return plain.Shell(os.Args[0])
}

func sameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, two)
}

// runFolder is the folder of a program that go run has built: a temporary one, or one
// in the build cache.
var runFolder = regexp.MustCompile(`[/\\](go-build[0-9]+[/\\]b[0-9]+[/\\]exe|[0-9a-f]{64}-d)$`)

// temporary reports whether go run started the program, whose path is then not worth
// keeping.
func temporary(program string) bool { return runFolder.MatchString(filepath.Dir(program)) }
