package cli

import (
	"io"
	"strings"
	"sync"
	"testing"
)

// TestHeldLine: a question has a clean line, whatever is drawn as it begins.
func TestHeldLine(t *testing.T) {
	s := &status{out: io.Discard, live: true}
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
		release := s.hold()
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
