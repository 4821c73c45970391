package live

import (
	"slices"
	"testing"
)

// TestSlots: starts with low priority wait for all others, and a start that has left the queue
// holds no slot.
func TestSlots(t *testing.T) {
	s := newSlots(2)
	acquired, leave := map[string]<-chan struct{}{}, map[string]func(){}
	enter := func(name string, p priority) { acquired[name], leave[name] = s.enter(p) }
	check := func(want ...string) {
		t.Helper()
		var got []string
		for name, turn := range acquired {
			select {
			case <-turn:
				got = append(got, name)
			default:
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("slots for %v, want %v", got, want)
		}
	}
	gone := func(name string) {
		leave[name]()
		leave[name]()
		delete(acquired, name)
	}
	enter("fill 1", low)
	check("fill 1")
	enter("eager 1", normal)
	check("eager 1", "fill 1")
	enter("fill 2", low)
	enter("fill 3", low)
	enter("eager 2", normal)
	enter("eager 3", normal)
	gone("fill 1")
	check("eager 1", "eager 2")
	gone("eager 3") // it leaves the queue before its turn
	gone("eager 1")
	check("eager 2", "fill 2")
	gone("fill 2")
	gone("eager 2")
	check("fill 3")
	enter("eager 4", normal)
	check("eager 4", "fill 3")
}
