package app

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/executor"
)

// TestJournal: everything is written once and in order, soon after it was noted, and
// the rest at the end; too much of it by the one who notes it.
func TestJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var written []string
		j := newJournal(func(e executor.Event) {
			mu.Lock()
			defer mu.Unlock()
			written = append(written, e.Tool)
		})
		expect := func(n int, when string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if len(written) != n {
				t.Errorf("%s %d are written, want %d", when, len(written), n)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		go j.run(ctx)
		noted := 0
		note := func(n int) {
			for range n {
				j.note(executor.Event{Tool: strconv.Itoa(noted)})
				noted++
			}
		}
		note(3)
		expect(0, "while the calls wait")
		time.Sleep(2 * journalTime)
		synctest.Wait()
		expect(noted, "soon after")
		note(journalSize)
		expect(noted, "when too many wait")
		note(1)
		cancel()
		synctest.Wait()
		expect(noted, "at the end")
		for i, tool := range written {
			if tool != strconv.Itoa(i) {
				t.Fatalf("number %d is %s", i, tool)
			}
		}
	})
}
