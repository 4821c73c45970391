//go:build unix

package child

import (
	"os"
	"syscall"
)

// tree is a child's process group, and its descendants outside of the group.
type tree struct {
	group int
	id    string // the mark in the environment
	known strays // descendants seen before the child was stopped
}

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func newTree(p *os.Process, id string) tree { return tree{group: p.Pid, id: id} }

// remember finds the descendants while parent IDs still connect them.
func (t *tree) remember() { t.known = findStrays(t.group, t.id) }

// alive reports whether the group has a process.
func (t *tree) alive() bool { return syscall.Kill(-t.group, 0) == nil }

func (t *tree) terminate() { _ = syscall.Kill(-t.group, syscall.SIGTERM) }

func (t *tree) kill() {
	if t.alive() {
		_ = syscall.Kill(-t.group, syscall.SIGKILL)
	}
	t.known.kill()
	findStrays(t.group, t.id).kill()
}
