package main

import (
	"fmt"
	"math"

	"mcpx/internal/tokens"
	"mcpx/internal/tokens/exact"
)

// estimates compares the estimate that mcpx uses while serving with the count.
type estimates struct {
	estimated, counted int
	largest            float64 // error of one text, as a part of its count
}

// add compares one text, and returns its count.
func (e *estimates) add(text string) int {
	estimated, counted := tokens.Estimate(text), exact.Count(text)
	e.estimated += estimated
	e.counted += counted
	if counted > 0 {
		e.largest = max(e.largest, math.Abs(float64(estimated)/float64(counted)-1))
	}
	return counted
}

func (e *estimates) print(what string) {
	fmt.Printf("the estimate used while serving, of %s: %+.1f %% in total, at most %.1f %% for one\n", what, 100*(float64(e.estimated)/float64(max(e.counted, 1))-1), 100*e.largest)
}
