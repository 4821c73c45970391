package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestSearchFindsOtherWords: search finds a tool by other words than its own. Three hits
// have signatures, and a server's name alone is answered with one line.
func TestSearchFindsOtherWords(t *testing.T) {
	t.Parallel()
	var books, notes []any
	schema := map[string]any{"type": "object", "properties": map[string]any{"id": map[string]any{"type": "string"}}, "required": []string{"id"}}
	for _, verb := range []string{"create", "delete", "approve", "archive"} {
		books = append(books, map[string]any{"name": verb + "_invoice", "description": "Will " + verb + " an invoice.", "inputSchema": schema})
	}
	for i := range 4 {
		notes = append(notes, map[string]any{"name": fmt.Sprintf("page_%d", i), "inputSchema": schema})
	}
	serve := func(tools []any) map[string]any {
		return mcptest.Upstream(t, "-answers", answersFile(t, map[string]any{"tools/list": map[string]any{"result": map[string]any{"tools": tools}}}))
	}
	p := start(t, map[string]any{"mcpServers": map[string]any{"books": serve(books), "notion": serve(notes)}}, options{})
	p.initialize()
	for _, row := range []struct{ arguments, want string }{
		{`{"query":"get rid of a bill","limit":1}`, "books: delete_invoice(id: string): Will delete an invoice"},
		{`{"query":"invoice"}`, `books: create_invoice(id: string): Will create an invoice
books: delete_invoice(id: string): Will delete an invoice
books: approve_invoice(id: string): Will approve an invoice
books: archive_invoice: Will archive an invoice`},
		{`{"query":"notion"}`, `notion: only the server's name matches; inspect("notion") lists its tools`},
	} {
		if got := p.exec("mcpx", "search", row.arguments); got != row.want {
			t.Errorf("search %s:\n got %s\nwant %s", row.arguments, got, row.want)
		}
	}
}

// TestSearchComparesMeanings: with search.embeddings, search finds a tool that has no word of
// the query, and the key of the endpoint is not shown.
func TestSearchComparesMeanings(t *testing.T) {
	t.Parallel()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.Header.Get("Api-Key") != "open-sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var data []any
		for i, text := range request.Input {
			vector := []float64{0, 1}
			if strings.Contains(text, "kitten") || strings.Contains(text, "groom") {
				vector = []float64{1, 0}
			}
			data = append(data, map[string]any{"index": i, "embedding": vector})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(endpoint.Close)
	tools := []any{map[string]any{"name": "groom", "inputSchema": map[string]any{"type": "object"}}, map[string]any{"name": "archive", "inputSchema": map[string]any{"type": "object"}}}
	p := start(t, map[string]any{
		"mcpServers": map[string]any{"zoo": mcptest.Upstream(t, "-answers", answersFile(t, map[string]any{"tools/list": map[string]any{"result": map[string]any{"tools": tools}}}))},
		"search":     map[string]any{"embeddings": map[string]any{"url": endpoint.URL, "model": "tiny", "headers": map[string]any{"Api-Key": "open-sesame"}}},
	}, options{})
	p.initialize()
	if got, want := p.exec("mcpx", "search", `{"query":"kitten"}`), "zoo: groom()"; got != want {
		t.Errorf("search: got %s, want %s", got, want)
	}
	if got := p.exec("mcpx", "show_config", `{}`); strings.Contains(got, "sesame") || !strings.Contains(got, endpoint.URL) {
		t.Errorf("show_config: %s", got)
	}
}
