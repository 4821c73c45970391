package results

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/selection"
)

// limits returns the options of a table that cuts above a number of tokens.
func limits(tokens int) Options {
	return Options{Tokens: tokens, Head: tokens, Bytes: 256 << 20, Idle: 30 * time.Minute}
}

func textOnly(text string) kept { return kept{text: text} }

// opened returns a result that is open until the test ends.
func opened(s *Table, raw []byte, q *selection.Query) *Result {
	r, err := s.Open(context.Background(), "me", raw, q)
	if err != nil {
		panic(err)
	}
	return r
}

// fitted returns a result as the client gets it.
func fitted(s *Table, raw []byte) []byte { return selected(s, raw, nil) }

// selected returns what a query selects of a result.
func selected(s *Table, raw []byte, q *selection.Query) []byte {
	r := opened(s, raw, q)
	defer r.Close()
	got, err := r.Fit()
	if err != nil {
		panic(err)
	}
	return got
}

// remember remembers a result.
func remember(s *Table, t Tool, raw string) {
	if s.RememberShort("me", t, []byte(raw)) {
		return
	}
	r := opened(s, []byte(raw), nil)
	defer r.Close()
	if err := r.Remember(t); err != nil {
		panic(err)
	}
}

// resolved returns the value of a reference.
func resolved(s *Table, client, reference string) ([]byte, error) {
	r := &Reference{Text: reference}
	_, err := s.Resolve(context.Background(), client, []*Reference{r}, 1<<20)
	return r.Value, err
}

// readable returns the IDs that a client can read.
func readable(s *Table, client string, ids ...string) (found []string) {
	for _, id := range ids {
		if _, err := s.load(context.Background(), client, id); err == nil {
			found = append(found, id)
		}
	}
	return found
}

func TestClientsAreApart(t *testing.T) {
	s := New(limits(1000))
	if a, b, c := s.save("a", textOnly("of a")).id, s.save("b", textOnly("of b")).id, s.save("a", textOnly("more")).id; a != "r1" || b != "r1" || c != "r2" {
		t.Errorf("ids %s %s %s", a, b, c)
	}
	if text, err := s.load(context.Background(), "b", "r1"); text.text != "of b" || err != nil {
		t.Errorf("got %q, %v", text.text, err)
	}
	if _, err := s.load(context.Background(), "b", "r2"); err == nil {
		t.Error("b reads what a has")
	}
	const want = `no result "r1": none is kept any more; call the tool again`
	if _, err := s.load(context.Background(), "c", "r1"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestForget(t *testing.T) {
	s := New(limits(1000))
	s.save("a", textOnly("one"))
	s.save("a", textOnly("two"))
	s.save("b", textOnly("three"))
	s.Forget("a")
	s.Forget("nobody")
	if got := readable(s, "a", "r1", "r2"); got != nil {
		t.Errorf("a still has %v", got)
	}
	if got := readable(s, "b", "r1"); len(got) != 1 {
		t.Error("b lost its text")
	}
	if s.bytes != textOnly("three").bytes() {
		t.Errorf("%d bytes counted", s.bytes)
	}
}

func TestTextsExpireAfterTheirLastUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(limits(1000))
		s.save("a", textOnly("one"))
		s.save("a", textOnly("two"))
		time.Sleep(20 * time.Minute)
		readable(s, "a", "r2")
		time.Sleep(10 * time.Minute)
		if got := readable(s, "a", "r1", "r2"); len(got) != 1 || got[0] != "r2" {
			t.Errorf("kept %v, want r2", got)
		}
		time.Sleep(30 * time.Minute)
		if got := readable(s, "a", "r1", "r2"); got != nil {
			t.Errorf("kept %v", got)
		}
		if id := s.save("a", textOnly("three")).id; id != "r3" {
			t.Errorf("id %s is given out again", id)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	s := New(limits(1000))
	big := strings.Repeat("x", maxClientBytes/2-entryBytes)
	for range 3 {
		s.save("a", textOnly(big))
	}
	if got := strings.Join(readable(s, "a", "r1", "r2", "r3"), " "); got != "r2 r3" {
		t.Errorf("kept %q, want the newest", got)
	}
	s.Bytes = 4 * maxClientBytes
	for _, client := range []string{"b", "c", "d", "e"} {
		s.save(client, textOnly(big))
		s.save(client, textOnly(big))
	}
	if got := readable(s, "a", "r2", "r3"); got != nil || s.bytes > s.Bytes {
		t.Errorf("%d bytes with %v", s.bytes, got)
	}
	s.Bytes = 1000 * entryBytes
	for range 2000 { // short texts need memory too
		s.save("f", textOnly("x"))
	}
	if n := s.results.Len(); n > 1000 {
		t.Errorf("%d short texts are kept", n)
	}
	s.Bytes = 4 * maxClientBytes
	s.save("f", textOnly(big+big+big))
	if got := readable(s, "f", "r2001"); got == nil {
		t.Error("a text over the bound of its client is lost")
	}
}

func TestNothingIsKept(t *testing.T) {
	for limit, want := range map[int]string{
		0:    `no result "r1": limits.result_tokens is 0, so none is kept; pass the value itself`,
		1000: `no result "r1": none is kept any more; call the tool again`,
	} {
		if _, err := New(limits(limit)).load(context.Background(), "me", "r1"); err == nil || err.Error() != want {
			t.Errorf("limit %d: %v, want %s", limit, err, want)
		}
	}
}

func TestErrorsListTheNewestIDs(t *testing.T) {
	s := New(limits(1000))
	for range 30 {
		s.save("a", textOnly("text"))
	}
	_, err := s.load(context.Background(), "a", "x")
	const want = `no result "x": kept are r11, r12, r13, r14, r15, r16, r17, r18, r19, r20, r21, r22, r23, r24, r25, r26, r27, r28, r29, r30; call the tool again for others`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestTableFromManyGoroutines(t *testing.T) {
	s := New(limits(1000))
	var all sync.WaitGroup
	for _, client := range []string{"a", "b", "c", "d"} {
		all.Go(func() {
			for range 50 {
				id := s.save(client, textOnly(client)).id
				if answer, err := s.Read(context.Background(), client, Query{ID: id}); err != nil || answer != client+"\n[bytes 0-1 of 1; end]" {
					t.Errorf("got %q, %v", answer, err)
				}
			}
			s.Forget(client)
		})
	}
	all.Wait()
	if s.bytes != 0 || s.results.Len() != 0 {
		t.Errorf("%d bytes in %d texts are left", s.bytes, s.results.Len())
	}
}

// TestClientsAreBounded: senders without a session come and go unnoticed. What is
// kept of them is bounded, and no id ever means another text.
func TestClientsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(limits(1000))
		for range 5 {
			s.save("first", textOnly("text"))
		}
		time.Sleep(s.Idle)
		for i := range 3 * maxClients {
			s.save(fmt.Sprint("sender ", i), textOnly("text"))
			if i == maxClients {
				time.Sleep(s.Idle) // those so far have no texts any more
			}
		}
		if len(s.clients) > maxClients {
			t.Errorf("%d clients are kept, want %d at most", len(s.clients), maxClients)
		}
		if id := s.save("first", textOnly("another text")).id; slices.Contains([]string{"r1", "r2", "r3", "r4", "r5"}, id) {
			t.Errorf("id %s is given out again", id)
		}
		if s.results.Len() > maxClients || s.bytes > maxClients*textOnly("another text").bytes() {
			t.Errorf("%d texts of %d bytes are kept", s.results.Len(), s.bytes)
		}
	})
}
