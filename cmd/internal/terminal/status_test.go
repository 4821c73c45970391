package terminal

import (
	"io"
	"strings"
	"sync"
	"testing"
)

// TestHeldLine: a question has a clean line, whatever is drawn as it begins.
func TestHeldLine(t *testing.T) {
	s := &Status{out: io.Discard, live: true}
	over := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
				s.draw(strings.Repeat(".", i%9))
			}
		}
	})
	for range 20_000 {
		release := s.Hold()
		s.mu.Lock()
		line := s.line
		s.mu.Unlock()
		if line != "" {
			t.Errorf("%q stands before the question", line)
			break
		}
		release()
	}
	close(over)
	drawing.Wait()
}

func TestProgressText(t *testing.T) {
	for params, want := range map[string]string{
		`{"progress":1}`:                                "tool: 1",
		`{"progress":0.5,"total":2}`:                    "tool: 0.5/2 (25 %)",
		`{"progress":3,"total":4,"message":"indexing"}`: "tool: indexing 3/4 (75 %)",
		`{"progress":3,"message":"indexing"}`:           "tool: indexing",
		`{"message":5}`:                                 "calling tool…",
	} {
		var p Progress
		p.Note([]byte(params))
		if got := p.Text("tool"); got != want {
			t.Errorf("%s: got %q, want %q", params, got, want)
		}
	}
}
