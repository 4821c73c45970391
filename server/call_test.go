package server

import (
	"context"
	"testing"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/rawjson"
)

// callAllocations is what a relayed call takes from the heap, from the client's
// line to the answer, on both sides of mcpx and in all its goroutines. Whoever
// changes the path of a call and needs more changes this number, and says why.
const callAllocations = 17

func TestAllocationsOfACall(t *testing.T) {
	b := start(t, upstream(t, "one"))
	client := b.NewClient("one", func([]byte) error { return nil })
	line := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"one","tool_name":"echo","arguments":{"text":"hello"}}}}`)
	answers := make(chan []byte, 1)
	reply := func(answer []byte) { answers <- answer }
	call := func() {
		b.Handle(context.Background(), client, Read(line), reply)
		if result := rawjson.Get(<-answers, "result"); rawjson.Get(result, "isError") != nil || result == nil {
			t.Fatalf("result %s", result)
		}
	}
	call() // it waits until the upstream is ready
	if got := testing.AllocsPerRun(500, call); got > callAllocations {
		t.Errorf("a call takes %v allocations, want at most %d", got, callAllocations)
	}
}

// TestAPanicCostsOneCall: also on the short path, where the reader of all messages
// is who panics.
func TestAPanicCostsOneCall(t *testing.T) {
	s := bare("one")
	s.executor = executor.New(nil, &config.Config{}, &config.Profile{}, executor.Options{}) // without a registry, so that the call panics
	var answers []string
	line := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"one","tool_name":"echo","arguments":{}}}}`)
	s.Handle(t.Context(), client(s), Read(line), func(answer []byte) { answers = append(answers, string(answer)) })
	want := `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"internal error in a call of echo"}],"isError":true}}`
	if len(answers) != 1 || answers[0] != want {
		t.Errorf("answers %q", answers)
	}
}
