package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/executor"
	"mcpx/internal/tokens"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

func TestMain(m *testing.M) {
	serveIfAsked()
	os.Exit(m.Run())
}

// TestResults: with five fields the issues cost a small part of the whole, and of a long
// result only the head is shown.
func TestResults(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	err := measureResults(t.Context(), func(ctx context.Context, e *executor.Executor) error {
		for _, test := range []struct {
			tool, query string
			least, most int
		}{
			{"issues", "", 8000, 9000},
			{"issues", selections[0].query, 100, 300},
			{"long", "", 1500, 2300},
		} {
			n, err := shownTokens(ctx, e, test.tool, test.query)
			if err != nil || n < test.least || n > test.most {
				t.Errorf("%s with select %q: %d tokens, %v; want %d to %d", test.tool, test.query, n, err, test.least, test.most)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestReport(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	folder := t.TempDir()
	one := `{"tools":[{"name":"read_file","description":"Read a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"` + strings.Repeat("where it is ", 20) + `"}},"required":["path"]}}]}`
	two := `{"tools":[{"name":"send_mail","inputSchema":{"type":"object"}},{"name":"list_mail","inputSchema":{"type":"object"}}]}`
	for name, list := range map[string]string{"files.json": one, "our__mail.json": two} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	servers, err := replays(folder)
	if err != nil {
		t.Fatal(err)
	}
	r := report{}
	if err := run(t.Context(), servers, r.addAll); err != nil {
		t.Fatal(err)
	}
	if want := tokens.Count(one) + tokens.Count(two); r.without != want || r.servers != 2 || r.tools != 3 || r.found != 3 {
		t.Errorf("%+v, want %d tokens without mcpx", r, want)
	}
	if want := (lineShares{full: 3}); r.lines != want {
		t.Errorf("lines %+v, want %+v", r.lines, want)
	}
	if mean, p95 := stats(r.byTool); mean <= r.with || p95 < mean || len(r.byServer) != 3 || len(r.bySearch) != 3 {
		t.Errorf("mean %d, p95 %d, %d and %d ways", mean, p95, len(r.byServer), len(r.bySearch))
	}
	if _, err := replays(t.TempDir()); err == nil {
		t.Error("a folder without lists is measured")
	}
}

func TestLineShares(t *testing.T) {
	tool := live.NewUpstream("srv", []lists.Item{{Key: "read", Raw: []byte(`{"name":"read","description":"Read it.","inputSchema":{"properties":{"a":{"type":"string"},"b":{}},"required":["a"]}}`)}}).Tool("read")
	for _, row := range []struct {
		line   string
		want   lineShares
		enough bool
	}{
		{"read(a: string, b?: unknown): Read it", lineShares{full: 1}, true},
		{"read(a: string, …): Read it", lineShares{typed: 1}, true},
		{"read(a: string, …)", lineShares{bare: 1}, false},
		{"read(a, …)", lineShares{bare: 1}, false},
		{"read", lineShares{bare: 1}, false},
		{"spread(a: string, b?: unknown): Read it", lineShares{bare: 1}, false},
	} {
		var got lineShares
		if enough := got.add("srv: 1 tool\n"+row.line, tool); got != row.want || enough != row.enough {
			t.Errorf("%s: %+v, %t, want %+v, %t", row.line, got, enough, row.want, row.enough)
		}
	}
}
