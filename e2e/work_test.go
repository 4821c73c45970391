package e2e

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestSelectsUseLittleMemory: a client that sends many selects on a large result at once gets
// all responses. mcpx does not use more memory than its limits allow, with a large margin for
// memory that is not collected yet. A call that is canceled while it waits gets no response.
func TestSelectsUseLittleMemory(t *testing.T) {
	row := `{"id":%d,"title":"a row of a large result","state":"open","user":{"login":"someone"},"labels":["a","b"]}`
	var rows strings.Builder
	for i := 0; rows.Len() < 5<<20; i++ {
		fmt.Fprintf(&rows, row+",", i)
	}
	data := `[` + rows.String() + `{"id":-1,"merged_at":"late"}]`
	p := start(t, map[string]any{
		"mcpServers": map[string]any{"a": mcptest.Upstream(t)},
		"limits":     map[string]any{"work_bytes": "64MiB"},
	}, options{})
	p.initialize()
	note := p.exec("a", "raw", `{"result":`+quote(`{"content":[],"structuredContent":`+data+`}`)+`}`)
	if !strings.Contains(note, "merged_at") {
		t.Errorf("the outline misses a field of the last row: %s", note[len(note)-600:])
	}
	before := p.peakMiB()
	const calls = 200
	for i := range calls {
		p.send(fmt.Sprint(i), "tools/call", execParams("mcpx", "read_result", `{"id":"r1","select":"*"}`))
	}
	// Both in one write, so that the call is not over before it is canceled.
	p.write(`{"jsonrpc":"2.0","id":"gone","method":"tools/call","params":` + execParams("mcpx", "read_result", `{"id":"r1","grep":"no[a-z]*where"}`) + `}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gone"}}`)
	if got := p.exec("a", "echo", `{"text":"meanwhile"}`); got != "meanwhile" {
		t.Errorf("another call: %q", got)
	}
	for i := range calls {
		if got := textOf(t, string(p.answer(fmt.Sprint(i)).Result), false); !strings.HasPrefix(got, `[{"id":0,`) {
			t.Fatalf("answer %d is %s", i, clip(got))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.answers[`"gone"`]) > 0 {
		t.Error("the canceled call was answered")
	}
	peak := p.peakMiB()
	t.Logf("peak %d MiB, %d before", peak, before)
	if !race && peak > before+2*64+64 {
		t.Errorf("mcpx used %d MiB, %d before the selects", peak, before)
	}
}

// TestLongResultsThatWaitUseLittleMemory: many long results of one server at the same time are
// all cut, one after the other, and those that wait stay with the server.
func TestLongResultsThatWaitUseLittleMemory(t *testing.T) {
	for name, upstream := range map[string]map[string]any{"stdio": mcptest.Upstream(t), "http": remoteChild(t)} {
		t.Run(name, func(t *testing.T) {
			p := start(t, map[string]any{"mcpServers": map[string]any{"a": upstream}, "limits": map[string]any{"kept_bytes": "10MiB"}}, options{})
			p.initialize()
			const size = 9 << 20
			calls := 16
			if race { // it takes seconds for each, and says nothing about memory
				calls = 2
			}
			for i := range calls {
				p.send(fmt.Sprint(i), "tools/call", execParams("a", "large", fmt.Sprintf(`{"bytes":%d}`, size)))
			}
			for i := range calls {
				if got := textOf(t, string(p.answer(fmt.Sprint(i)).Result), false); !strings.Contains(got, "[cut: 9,437,184 bytes") {
					t.Fatalf("answer %d is %s", i, clip(got))
				}
			}
			peak := p.peakMiB()
			t.Logf("peak %d MiB", peak)
			if !race && peak > 240 {
				t.Errorf("mcpx used %d MiB", peak)
			}
		})
	}
}
