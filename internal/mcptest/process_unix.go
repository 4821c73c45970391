//go:build unix

package mcptest

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Alive reports whether a process exists and has not ended.
func Alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
