package registry

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	const died = time.Second // ready for so long
	for name, steps := range map[string][]struct {
		healthy, want time.Duration
	}{
		"never starts":     {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {0, 32}, {0, 60}, {0, 60}},
		"dies and dies":    {{died, 0}, {died, 1}, {died, 2}, {died, 4}},
		"a minute of it":   {{died, 0}, {died, 1}, {time.Minute, 0}, {died, 1}},
		"starts at last":   {{0, 1}, {0, 2}, {died, 0}, {died, 4}},
		"dies, then fails": {{died, 0}, {0, 1}, {0, 2}},
	} {
		var b backoff
		for i, step := range steps {
			want := step.want * time.Second
			if got := b.next(step.healthy); got > want || got < want*4/5 {
				t.Errorf("%s: wait %d is %s, want %s less a fifth at most", name, i, got, want)
			}
		}
	}
}
