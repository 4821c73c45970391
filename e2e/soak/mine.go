//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"time"
)

// mine keeps long results and reads parts of them, many at the same time, until ctx ends.
func (s *soak) mine(ctx context.Context, f *front) {
	by := f.newCaller()
	web, isWeb := by.(*webClient)
	if isWeb {
		web.keep = true // handles belong to the session
	}
	for ctx.Err() == nil {
		s.mineOnce(by, f.part)
		if isWeb {
			web.close()
		}
		sleep(ctx, 5*s.pause)
	}
}

var keptAs = regexp.MustCompile(`Kept as (r[0-9]+):`)

// mineOnce keeps a result with rows, and reads parts of it.
func (s *soak) mineOnce(by caller, p part) {
	c := plainCall(p, steady)
	c.How, c.Bytes = "rows", 1<<(16+rand.IntN(6))
	begin := time.Now()
	a, err := by.exec(c.server, "work", fmt.Sprintf(`{"nonce":%q,"how":"rows","bytes":%d}`, c.Nonce, c.Bytes), 0)
	handle := keptAs.FindStringSubmatch(textOf(a))
	e := entry{call: c, outcome: ok, begin: begin, end: time.Now()}
	if handle == nil {
		e.outcome = judge(c, a, err)
	}
	s.ledger.note(e, a, err)
	if handle == nil {
		return
	}
	rows := strings.Count(c.Text(), "{")
	var wg sync.WaitGroup
	for range 1 + rand.IntN(16) {
		wg.Go(func() { s.readPart(by, p, handle[1], rows) })
	}
	wg.Wait()
}

// readPart reads a random part of kept rows, and checks it.
func (s *soak) readPart(by caller, p part, handle string, rows int) {
	s.ledger.addSelections(1)
	row := rand.IntN(rows - 5)
	switch rand.IntN(5) {
	case 0:
		digit := row % 10
		s.readKept(by, fmt.Sprintf(`{"id":%q,"select":"count where digit = %d"}`, handle, digit), fmt.Sprint((rows-1-digit)/10+1))
	case 1:
		s.readKept(by, fmt.Sprintf(`{"id":%q,"select":"n where n >= %d limit 3"}`, handle, row), fmt.Sprintf("[3]{n}:\n%d\n%d\n%d", row, row+1, row+2))
	case 2:
		s.readKept(by, fmt.Sprintf(`{"id":%q,"path":"/%d/n"}`, handle, row), fmt.Sprint(row))
	case 3:
		c := plainCall(p, steady)
		c.handle, c.Bytes = handle, min(row, 500)
		s.one(by, c)
	default:
		a, err := by.exec("mcpx", "read_result", fmt.Sprintf(`{"id":%q,"select":"*"}`, handle), rand.N(30*time.Millisecond)+1)
		if err == nil && strings.Contains(string(a.Result), `"isError"`) || err != nil && !errors.Is(err, errGivenUp) {
			s.ledger.violation(wrongAnswer, "a canceled select of %s: %v %.300s", handle, err, a.Result)
		}
	}
}

// readKept calls read_result, whose text must be want, with or without notes in further lines.
func (s *soak) readKept(by caller, arguments, want string) {
	a, err := by.exec("mcpx", "read_result", arguments, 0)
	if text := textOf(a); err != nil || !strings.HasPrefix(text+"\n", want+"\n") {
		s.ledger.violation(wrongAnswer, "read_result %s: %v %.300q, want %q", arguments, err, text, want)
	}
}

// Clients that do not read.
const (
	deafCalls   = 32
	deafTimeout = 30 * time.Second // the upstream needs long for so many bytes
	deafBytes   = 2 << 20
	// deafPeak is the most memory in KiB that mcpx may use for a client that does not read, with
	// limits.unread_bytes of 1 MiB. All responses together have about as many bytes.
	deafPeak = 90 << 10
)

// visitDeaf runs a client that starts its own mcpx, makes calls with long results, reads nothing
// for a while, and then everything, again and again.
func (s *soak) visitDeaf(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		visitor := part{name: fmt.Sprint("deaf-", i), title: "a client that does not read", servers: []string{steady}, unreadBytes: 1 << 20, timeout: deafTimeout}
		p, err := startStdio(s, visitor)
		if err != nil {
			s.ledger.violation(other, "%s: %v", visitor.name, err)
			return
		}
		var wg sync.WaitGroup
		p.hearing.Lock()
		for range deafCalls {
			c := plainCall(visitor, steady)
			c.Bytes = deafBytes
			wg.Go(func() { s.one(p, c) })
		}
		sleep(ctx, time.Second)
		p.hearing.Unlock()
		wg.Wait()
		s.ledger.noteDeaf(p.peak())
		s.stopProgram(p.program, func() { _ = p.in.Close() }, 0)
		sleep(ctx, 10*time.Second)
	}
}
