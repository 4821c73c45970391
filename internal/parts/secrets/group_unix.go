//go:build unix

package secrets

import (
	"os/exec"
	"syscall"
)

// killGroup makes the end of the command's context kill everything that it started.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
