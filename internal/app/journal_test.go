package app

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/executor"
)

// TestJournal: everything is written once and in order, soon after it was noted, and
// the rest at the end; too much of it by the one who notes it.
func TestJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written []string
		j := newJournal(func(e executor.Event) { written = append(written, e.Tool) })
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
		if len(written) != 0 {
			t.Errorf("%d were written while a call waited", len(written))
		}
		time.Sleep(2 * journalTime)
		synctest.Wait()
		if len(written) != noted {
			t.Errorf("%d of %d are written", len(written), noted)
		}
		note(journalSize)
		if len(written) != noted {
			t.Errorf("%d of %d are written, though too many waited", len(written), noted)
		}
		note(1)
		cancel()
		synctest.Wait()
		for i, tool := range written {
			if tool != strconv.Itoa(i) {
				t.Fatalf("number %d is %s", i, tool)
			}
		}
		if len(written) != noted {
			t.Errorf("%d of %d are written at the end", len(written), noted)
		}
	})
}
