package e2e

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestNoLeaks: calls of every outcome and a restart of an upstream leave no open files.
func TestNoLeaks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	quick := mcptest.Upstream(t)
	quick["timeout"] = "50ms"
	p := serve(t, map[string]any{"a": mcptest.Upstream(t), "quick": quick})
	p.initialize()
	p.exec("a", "pid", "")
	p.inspect("quick", "") // wait for it without a call, which could time out
	before := openFiles(t, p)
	calls := 2000
	var answered []string
	for i := range calls {
		id := p.nextID()
		switch i % 8 {
		case 0:
			p.send(id, "tools/call", execParams("a", "sleep", `{"ms":3600000}`))
			p.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%s}`, id))
			continue
		case 1:
			p.send(id, "tools/call", execParams("a", "fail", `{}`))
		case 2:
			p.send(id, "tools/call", execParams("a", "echo", `{}`))
		case 3:
			p.send(id, "tools/call", execParams("a", "nothing", `{}`))
		case 4:
			p.send(id, "tools/call", execParams("quick", "sleep", `{"ms":3600000}`))
		case 5:
			p.send(id, "tools/call", inspectParams("a", "echo"))
		default:
			p.send(id, "tools/call", execParams("a", "echo", `{"text":"x"}`))
		}
		answered = append(answered, id)
	}
	for _, id := range answered {
		p.answer(id)
	}
	p.execError("a", "crash", `{}`)
	p.exec("a", "pid", "")
	eventually(t, "open files after calls", func() (string, bool) {
		after := openFiles(t, p)
		return fmt.Sprintf("%d before, %d now:\n%s", len(before), len(after), strings.Join(after, "\n")), len(after) <= len(before)
	})
}

// openFiles lists the open files of a process.
func openFiles(t *testing.T, p *process) (targets []string) {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if target, err := os.Readlink(dir + "/" + e.Name()); err == nil {
			targets = append(targets, e.Name()+" "+target)
		}
	}
	return targets
}
