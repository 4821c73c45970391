package server

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/jsonrpc"
	"mcpx/internal/rawjson"
)

// TestAClientThatDoesNotComeBack: neither the call nor who asked is kept for it.
func TestAClientThatDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rounds{parked: map[string]*round{}}
		c := newClient("one", true, nil)
		asked, ended := make(chan error, 1), make(chan error, 1)
		result, err := r.run(t.Context(), c, jsonrpc.Message{Method: "tools/call", Params: []byte("{}")}, func(ctx context.Context) ([]byte, error) {
			go func() {
				_, err := c.ask(context.WithoutCancel(ctx), "roots/list", nil) // for the sake of another call
				asked <- err
			}()
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, ctx.Err()
		})
		if kind, _ := rawjson.String(rawjson.Get(result, "resultType")); err != nil || kind != "input_required" {
			t.Fatalf("%s, %v", result, err)
		}
		time.Sleep(parkTime + time.Second)
		synctest.Wait()
		for name, end := range map[string]chan error{"the client did not answer": asked, "did not come back within 10m0s": ended} {
			select {
			case err := <-end:
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%v, want %s", err, name)
				}
			default:
				t.Errorf("nobody was told: %s", name)
			}
		}
	})
}
