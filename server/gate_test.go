package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"mcpx/executor"
	"mcpx/internal/rawjson"
)

// gate records what it is asked, and refuses everything that contains a word.
type gate struct {
	takesTime bool // Check leaves the decision to Wait

	mu    sync.Mutex
	asked []string
}

func (g *gate) Check(a *executor.Attempt) error {
	if g.takesTime {
		return executor.ErrMustWait
	}
	return g.decide(a)
}

func (g *gate) Wait(_ context.Context, a *executor.Attempt) error { return g.decide(a) }

func (g *gate) decide(a *executor.Attempt) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, fmt.Sprintf("%s %s %s", a.Server, a.Method, a.Name))
	if strings.Contains(string(a.Arguments), "forbidden") {
		return errors.New("the gate is closed")
	}
	return nil
}

// TestEveryRequestPassesTheGates: calls of every kind, and other requests, ask each gate once,
// and are sent only if all let them pass.
func TestEveryRequestPassesTheGates(t *testing.T) {
	const self = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},`
	rows := []struct{ name, expose, request, asked string }{
		{"quick", "lazy", `"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"a","tool_name":"echo","arguments":{"text":"%s"}}}`, "a tools/call echo"},
		{"slow", "lazy", `"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"a","tool_name":"arguments","arguments":{"text":"%s"},"select":"*"}}`, "a tools/call arguments"},
		{"repaired", "lazy", `"method":"tools/call","params":{"name":"exec","arguments":{"tool_name":"a.echo","text":"%s"}}`, "a tools/call echo"},
		{"built-in", "lazy", `"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"mcpx","tool_name":"schema","arguments":{"server":"a","tool":"%s"}}}`, "mcpx tools/call schema"},
		{"2026-07-28", "lazy", `"method":"tools/call","params":{` + self + `"name":"exec","arguments":{"server_name":"a","tool_name":"echo","arguments":{"text":"%s"}}}`, "a tools/call echo"},
		{"flat", "flat", `"method":"tools/call","params":{"name":"a__echo","arguments":{"text":"%s"}}`, "a tools/call echo"},
		{"prompt", "flat", `"method":"prompts/get","params":{"name":"a__needs","arguments":{"context":"%s"}}`, "a prompts/get needs"},
		{"resource", "lazy", `"method":"resources/read","params":{"uri":"item://%s"}`, "a resources/read item://%s"},
		{"completion", "lazy", `"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"item://{id}"},"argument":{"name":"id","value":"%s"}}`, "a completion/complete item://{id}"},
	}
	for _, takesTime := range []bool{false, true} {
		for _, expose := range []string{"lazy", "flat"} {
			first, last := &gate{takesTime: takesTime}, &gate{}
			b := (&bench{gates: []executor.Gate{first, last}}).startAs(t, map[string]any{"expose": expose}, newUpstream(t, "a", "-full"))
			b.client.SetInitialized("2025-06-18", nil)
			for _, row := range rows {
				if row.expose != expose {
					continue
				}
				for _, word := range []string{"allowed", "forbidden"} {
					first.asked, last.asked = nil, nil
					answer := b.ask(t, `{"jsonrpc":"2.0","id":1,`+fmt.Sprintf(row.request, word)+`}`)
					isRefused, want := strings.Contains(answer, "the gate is closed"), []string{strings.Replace(row.asked, "%s", word, 1)}
					if isRefused != (word == "forbidden") || !isRefused && rawjson.Get([]byte(answer), "error") != nil {
						t.Errorf("%s, %s: %s", row.name, word, answer)
					}
					if !slices.Equal(first.asked, want) || slices.Equal(last.asked, want) == isRefused {
						t.Errorf("%s, %s: the gates were asked %q and %q, want %q", row.name, word, first.asked, last.asked, want)
					}
				}
			}
		}
	}
}
