package server

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBatches(t *testing.T) {
	b := start(t)
	batch := `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},5,{"jsonrpc":"2.0","id":"x","method":"nope"}]`
	c := b.connect(t, "2025-03-26", "{}")
	for text, want := range map[string]string{
		batch: `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a message is one JSON object"}},{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method 'nope' not found"}}]`,
		`[]`:  `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: an empty batch"}}`,
		`[` + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, MaxBatch) + `5]`:           `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: a batch has at most 1000 messages, this one has 1001; send it in parts"}}`,
		`[{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}]`: `[{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Invalid request: initialize must not be part of a batch"}}]`,
		`[{"id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]`:                        `[{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\""}},{"jsonrpc":"2.0","id":8,"result":{}}]`,
		`[{`: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: not valid JSON"}}`,
		`[{"jsonrpc":"2.0","method":"notifications/initialized"}]`: ``,
	} {
		if got := c.ask(t, text); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
	later := b.connect(t, "2025-06-18", "{}")
	if got := later.ask(t, batch); !strings.Contains(got, "-32600") {
		t.Errorf("a batch in 2025-06-18 was answered with %s", got)
	}
}

// TestABatchKeepsToTheQuota: requests of a batch run at the same time within the
// client's quota, and at least one does.
func TestABatchKeepsToTheQuota(t *testing.T) {
	for most, want := range map[int]int{1: 1, 3: 3, 100: 20} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient("one", nil)
			c.Quota = NewQuota(most, 0)
			c.Quota.TryAcquire() // the batch itself
			var running, peak atomic.Int32
			var parts []func(reply func(answer []byte))
			for range 20 {
				parts = append(parts, func(reply func(answer []byte)) {
					now := running.Add(1)
					for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
					}
					<-time.After(time.Second)
					running.Add(-1)
					reply([]byte("{}"))
				})
			}
			if n := len(c.runBatch(parts)); n != 20 || peak.Load() != int32(want) || c.Quota.calls != 1 {
				t.Errorf("quota %d: %d answers, %d at the same time, %d calls are left", most, n, peak.Load(), c.Quota.calls)
			}
		})
	}
}
