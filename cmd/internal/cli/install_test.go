package cli

import "testing"

func TestTemporary(t *testing.T) {
	for program, want := range map[string]bool{
		"/tmp/go-build123/b001/exe/mcpx": true,
		"/home/me/.cache/go-build/4c/4c0000000000000000000000000000000000000000000000000000000000000a-d/mcpx": true,
		"/data/gocache/4c/4c0000000000000000000000000000000000000000000000000000000000000a-d/mcpx":            true,
		"/usr/local/bin/mcpx":  false,
		"/home/me/go/bin/mcpx": false,
	} {
		if got := temporary(program); got != want {
			t.Errorf("%s: %v", program, got)
		}
	}
}
