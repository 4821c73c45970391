package cli

import (
	"bufio"
	"context"
	"io"
	"testing"
	"testing/synctest"
)

// TestWithdrawnQuestions: what a person writes answers the question that is asked
// then, never one from before.
func TestWithdrawnQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stdin, keyboard := io.Pipe()
		c := &caller{status: newStatus(io.Discard), out: io.Discard, in: bufio.NewReader(stdin)}
		ask := func(ctx context.Context) <-chan string {
			answer := make(chan string, 1)
			go func() {
				result, err := c.Request(ctx, "elicitation/create", []byte(`{"message":"who?","requestedSchema":{"properties":{"name":{"type":"string"}},"required":["name"]}}`))
				if err != nil {
					result = []byte(err.Error())
				}
				answer <- string(result)
			}()
			synctest.Wait()
			return answer
		}
		write := func(text string) {
			go func() { _, _ = io.WriteString(keyboard, text) }()
			synctest.Wait()
		}
		ctx, withdraw := context.WithCancel(t.Context())
		first := ask(ctx)
		withdraw()
		if got := <-first; got != context.Canceled.Error() {
			t.Errorf("the question that was withdrawn got %s", got)
		}
		second := ask(t.Context())
		write("Ann\n")
		if got, want := <-second, `{"action":"accept","content":{"name":"Ann"}}`; got != want {
			t.Errorf("the one after it got %s, want %s", got, want)
		}
		ctx, withdraw = context.WithCancel(t.Context())
		third := ask(ctx)
		withdraw()
		<-third
		write("too late\n")
		fourth := ask(t.Context())
		write("Bob\n")
		if got, want := <-fourth, `{"action":"accept","content":{"name":"Bob"}}`; got != want {
			t.Errorf("the last got %s, want %s", got, want)
		}
	})
}
