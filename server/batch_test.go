package server

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/rawjson"
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
			responses, _ := c.runBatch(parts)
			if n := len(responses); n != 20 || peak.Load() != int32(want) || c.Quota.calls != 1 {
				t.Errorf("quota %d: %d answers, %d at the same time, %d calls are left", most, n, peak.Load(), c.Quota.calls)
			}
		})
	}
}

// TestAnswersOfABatchAreBounded: the responses of a batch are kept in memory until all are there.
// If there is no room for a response, it is replaced by an error.
func TestAnswersOfABatchAreBounded(t *testing.T) {
	c := newClient("one", nil)
	c.Quota = NewQuota(1, 0)
	c.Quota.TryAcquire() // the batch itself, so its requests run one by one
	long := []byte(`{"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", maxBatchBytes/3) + `"}`)
	parts := make([]func(reply func(answer []byte)), 4)
	for i := range parts {
		parts[i] = func(reply func(answer []byte)) { reply(long) }
	}
	responses, free := c.runBatch(parts)
	for i, r := range responses {
		code := string(rawjson.Get(rawjson.Get(r, "error"), "code"))
		if i < 2 && len(r) != len(long) || i >= 2 && code != "-32603" || string(rawjson.Get(r, "id")) != "7" {
			t.Errorf("answer %d: %.200s", i, r)
		}
	}
	free()
	if left := c.Quota.batchBytes.Load(); left != 0 {
		t.Errorf("%d bytes are still counted", left)
	}
}

// TestALongAnswerCostsNoOther: while an answer of a batch is refused, others are kept, and a
// canceled request stays without an answer.
func TestALongAnswerCostsNoOther(t *testing.T) {
	memory := batchMemory{total: new(atomic.Int64)}
	long, short := make([]byte, maxBatchBytes+1), []byte("{}")
	var refusing sync.WaitGroup
	var isOver atomic.Bool
	refusing.Go(func() {
		for !isOver.Load() {
			memory.keep(long)
		}
	})
	for range 300_000 {
		if got := memory.keep(nil); got != nil {
			t.Errorf("a canceled request is answered with %s", got)
			break
		}
		if got := memory.keep(short); len(got) != len(short) {
			t.Errorf("a short answer was replaced by %s", got)
			break
		}
	}
	isOver.Store(true)
	refusing.Wait()
}

// TestABatchIsReadAtOnce: although a batch waits for room, its responses reach the calls that
// wait for them, and its requests can be canceled. When all of them are, it waits no longer.
func TestABatchIsReadAtOnce(t *testing.T) {
	s := bare()
	c := client(s)
	c.SetInitialized("2025-03-26", []byte(`{"roots":{}}`))
	c.markReachable()
	c.Quota = NewQuota(1, 0)
	if !c.Quota.TryAcquire() { // by the call that sends the request
		t.Fatal("no room")
	}
	roots := make(chan string, 1)
	sent := make(chan []byte, 1)
	go func() {
		through := c.Through(func(message []byte) error { sent <- message; return nil })
		result, err := through.Request(t.Context(), "roots/list", nil)
		roots <- fmt.Sprint(string(result), err)
	}()
	id := rawjson.Get(<-sent, "id")
	batch := fmt.Sprintf(`[{"jsonrpc":"2.0","id":%s,"result":{}},{"jsonrpc":"2.0","id":5,"method":"ping"},{"jsonrpc":"2.0","id":6,"method":"ping"}]`, id)
	if !c.Quota.Enter(len(batch)) {
		t.Fatal("the queue is full")
	}
	responses := make(chan []byte, 1)
	request, start := s.Accept(t.Context(), c, Read([]byte(batch)))
	c.Quota.Start(request, len(batch), start, func(response []byte) { responses <- response })
	if got := <-roots; got != "{}<nil>" {
		t.Errorf("the response in the batch is %s", got)
	}
	for _, id := range []string{"5", "6"} {
		if request.Err() != nil {
			t.Error("the batch has ended before its last request")
		}
		s.Handle(t.Context(), c, Read([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)), nil)
	}
	if got := <-responses; got != nil {
		t.Errorf("canceled requests are answered with %s", got)
	}
}

// TestABatchWithErrorsWaits: a batch with an invalid message has a response even if all its
// requests are canceled, so it waits for room, and each of its messages counts in the queue.
func TestABatchWithErrorsWaits(t *testing.T) {
	s := bare()
	c := client(s)
	c.SetInitialized("2025-03-26", nil)
	batch := Read([]byte(`[1,{"jsonrpc":"2.0","id":5,"method":"ping"}]`))
	request, _ := s.Accept(t.Context(), c, batch)
	s.Handle(t.Context(), c, Read([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)), nil)
	if onlyErrors, _ := s.Accept(t.Context(), c, Read([]byte(`[1,1]`))); request.Err() != nil || onlyErrors.Err() != nil {
		t.Error("a batch with an invalid message does not wait")
	}
	one := Read([]byte(`{"jsonrpc":"2.0","id":0,"method":"ping"}`))
	if got, most := batch.Size(), len(batch.Text)+2*1100; got < 2*1000 || got > most || one.Size() != len(one.Text) {
		t.Errorf("a batch of 2 has size %d, a request %d", got, one.Size())
	}
}
