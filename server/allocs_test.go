package server

import (
	"testing"

	"mcpx/internal/rawjson"
)

// callAllocations is what a relayed call takes from the heap, from the client's
// line to the answer, on both sides of mcpx and in all its goroutines. Whoever
// changes the path of a call and needs more changes this number, and says why.
const callAllocations = 22

func TestAllocationsOfACall(t *testing.T) {
	b := start(t, upstream(t, "one"))
	client := b.NewClient("one", func([]byte) error { return nil })
	line := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"one","tool_name":"echo","arguments":{"text":"hello"}}}}`)
	call := func() {
		answer, _ := b.AcceptText(t.Context(), client, line, nil)
		if result := rawjson.Get(answer(), "result"); rawjson.Get(result, "isError") != nil || result == nil {
			t.Fatalf("result %s", result)
		}
	}
	call()
	if got := testing.AllocsPerRun(500, call); got > callAllocations {
		t.Errorf("a call takes %v allocations, want at most %d", got, callAllocations)
	}
}
