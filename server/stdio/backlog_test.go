package stdio

import (
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/rawjson"
	"mcpx/server"
)

// TestBacklog: requests come out in their order; one that is queued can be
// cancelled, a batch, which has no ID, cannot.
func TestBacklog(t *testing.T) {
	b := newBacklog()
	for i := range 5 {
		b.add(server.Read([]byte(request("ping", fmt.Sprintf(`{"n":%d}`, i)))))
	}
	b.queue[2].Message.ID, b.queue[3].Message.ID = []byte("7"), nil
	if b.cancel(nil) || b.cancel([]byte("8")) || !b.cancel([]byte("7")) || b.cancel([]byte("7")) {
		t.Error("the wrong request is cancelled")
	}
	var order []string
	for !b.isEmpty() {
		p, ok := b.pop()
		if !ok || b.isEmpty() {
			t.Fatal("a request that starts counts as started")
		}
		order = append(order, string(rawjson.Get(p.Message.Params, "n")))
		b.started()
	}
	if got := strings.Join(order, " "); got != "0 1 3 4" || b.bytes != 0 {
		t.Errorf("the order is %s, %d bytes are left", got, b.bytes)
	}
}
