package registry

import (
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/link"
)

// A client that is told of a change lists at once: the catalog has it by then.
func TestWhoIsToldOfAChangeFindsIt(t *testing.T) {
	f := &fake{}
	c := config.Upstream{Name: "a", StartupTimeout: time.Minute}
	r := New(&config.Profile{Upstreams: []config.Upstream{c}}, Options{Log: zerolog.Nop()})
	s := r.supervisors["a"]
	l, err := f.dial(t.Context(), link.Options{})
	if err != nil {
		t.Fatal(err)
	}
	session := newSession(s, nil, l)
	go session.run()
	defer session.Close()
	told := make(chan string)
	go func() {
		defer close(told)
		for {
			if _, err := r.changed.wait(t.Context(), session.done()); err != nil {
				return
			}
			name := ""
			for _, tool := range r.Catalog().Upstream("a").Tools {
				name = tool.Name
			}
			told <- name
		}
	}()
	for i := range 2000 {
		s.list(t.Context(), session, kinds[0])
		if got, want := <-told, fmt.Sprintf("t%d", i+1); got != want {
			t.Fatalf("the client that is told of %s finds %q", want, got)
		}
	}
}
