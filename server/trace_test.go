package server

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// tracer notes the requests it gets and how their spans end.
type tracer struct{ notes []string }

func (r *tracer) Receive(ctx context.Context, q TracedRequest) (context.Context, Span) {
	r.notes = append(r.notes, fmt.Sprintf("%s %s %s %s %s", q.Method, q.ID, q.Meta, q.Revision, q.Profile))
	return ctx, r
}

func (r *tracer) End(result []byte, failure string) {
	r.notes = append(r.notes, fmt.Sprintf("end %s%s", result, failure))
}

// TestTracer: what a Tracer gets of clients' requests.
func TestTracer(t *testing.T) {
	for _, row := range []struct {
		name, message string
		want          []string
	}{
		{"a result", request("ping", `{"_meta":{"a":1}}`), []string{`ping 1 {"a":1} 2025-11-25 default`, "end {}"}},
		{"an error", request("prompts/get", ""), []string{"prompts/get 1  2025-11-25 default", "end -32602"}},
		{"a client's text as method", request("my secret", ""), []string{"_OTHER 1  2025-11-25 default", "end -32601"}},
		{"a revision in _meta", request("ping", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01"}}`), []string{`ping 1 {"io.modelcontextprotocol/protocolVersion":"2030-01-01"} 2030-01-01 default`, "end -32022"}},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := &bench{Server: bare()}
			b.client = client(b.Server)
			b.client.SetInitialized("2025-11-25", nil)
			r := &tracer{}
			b.Tracer = r
			b.ask(t, row.message)
			if !slices.Equal(r.notes, row.want) {
				t.Errorf("the tracer has %q, want %q", r.notes, row.want)
			}
		})
	}
}
