package e2e

import (
	"fmt"
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
