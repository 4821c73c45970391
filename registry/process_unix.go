//go:build unix

package registry

import (
	"os"
	"syscall"
)

// tree is a child's process group and what left it.
type tree struct {
	group int
	id    string // the mark in the environment
	known strays // seen below the child before it ended
}

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func newTree(p *os.Process, id string) tree { return tree{group: p.Pid, id: id} }

// remember looks for descendants while their parents still tell whose they are.
func (t *tree) remember() { t.known = findStrays(t.group, t.id) }

// alive reports whether the group has a member.
func (t *tree) alive() bool { return syscall.Kill(-t.group, 0) == nil }

func (t *tree) terminate() { _ = syscall.Kill(-t.group, syscall.SIGTERM) }

func (t *tree) kill() {
	if t.alive() {
		_ = syscall.Kill(-t.group, syscall.SIGKILL)
	}
	t.known.kill()
	findStrays(t.group, t.id).kill()
}
