package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"mcpx/internal/app"
)

// clones writes small files in the form of both benchmarks.
func clones(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"LiveMCPBench/" + liveTools: `[
			{"description": "Paints things", "tools": {"studio": {"tools": [{"name": "draw_cat", "description": "Draws a cat.", "inputSchema": {"type": "object"}}]}}},
			{"description": "Keeps files", "tools": {"disk": {"tools": [{"name": "write_file", "inputSchema": {"type": "object"}}]}, "store": {"tools": [{"name": "write_file", "inputSchema": {"type": "object"}}]}}}]`,
		"LiveMCPBench/" + liveTasks: `[
			{"task_id": "1", "Question": "Draw a cat, save it to /tmp/cat.md", "Annotator Metadata": {"Tools": "1. draw_cat\n2) write_file; lost"}},
			{"task_id": "2", "Question": "Nothing", "Annotator Metadata": {"Tools": "lost"}}]`,
		"LiveMCPBench/" + liveOutput: `[
			{"task_id": "1", "messages": [{"role": "user"}, {"tool_calls": [
				{"function": {"name": "route", "arguments": "{\"query\": \"<tool_assistant>\\nserver: art\\ntool: draw\\n</tool_assistant>\"}"}},
				{"function": {"name": "execute-tool", "arguments": "{\"query\": \"no\"}"}}]}]},
			{"task_id": "2", "messages": [{"tool_calls": [{"function": {"name": "route", "arguments": "{\"query\": \"x\"}"}}]}]}]`,
		"MetaTool/" + metaTools:   `{"TimeTool": "Tells the time.", "catpaint": "Paint a cat."}`,
		"MetaTool/" + metaQueries: "Query,Tool\n\"What time is it, please?\",TimeTool\nA cat,catpaint\n",
	} {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestRead(t *testing.T) {
	benchmarks, err := read(clones(t))
	if err != nil || len(benchmarks) != 3 {
		t.Fatalf("%d benchmarks, %v", len(benchmarks), err)
	}
	gold := []string{"studio/draw_cat", "disk/write_file", "store/write_file"}
	sets := []querySet{
		{"tasks (A)", recall, []query{{"Draw a cat, save it to /tmp/cat.md", gold}}},
		{"agent's queries (B)", anyHit, []query{{"server: art\ntool: draw", gold}}},
	}
	if got := benchmarks[0].sets; !reflect.DeepEqual(got, sets) {
		t.Errorf("LiveMCPBench: %q, want %q", got, sets)
	}
	if bare, described := benchmarks[0].servers[2], benchmarks[1].servers[2]; bare.description != "" || described.description != "Paints things" {
		t.Errorf("descriptions %q and %q", bare.description, described.description)
	}
	want := []query{{"What time is it, please?", []string{"plugins/TimeTool"}}, {"A cat", []string{"plugins/catpaint"}}}
	if got := benchmarks[2].sets[0].queries; !reflect.DeepEqual(got, want) {
		t.Errorf("MetaTool: %q, want %q", got, want)
	}
	if _, err := read(t.TempDir()); err == nil {
		t.Error("an empty folder is accepted")
	}
}

// TestSearch: mcpx and BM25 find the tools that are served.
func TestSearch(t *testing.T) {
	for _, name := range []string{"XDG_CACHE_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	benchmarks, err := read(clones(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range benchmarks {
		c, stop, err := b.serve()
		if err != nil {
			t.Fatal(err)
		}
		a, err := app.New(c, "default", os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		err = b.run(t.Context(), a, func(set querySet, way searcher, r result) {
			if r.queries != len(set.queries) || r.at[2] == 0 {
				t.Errorf("%s, %s, %s: %+v", b.name, set.name, way.name(), r)
			}
		})
		if stop(); err != nil {
			t.Error(err)
		}
	}
}

func TestHitsOf(t *testing.T) {
	const answer = "a: read(path: string): Reads: all\nb: write: Writes\nc: ping\nd: only the server's name matches; inspect(\"d\") lists its tools\nno tool matches"
	if got, want := hitsOf(answer), []string{"a/read", "b/write", "c/ping"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFigures(t *testing.T) {
	tools, gold := []string{"a/x", "a/y"}, []string{"a/y", "b/y"}
	if got := recall.of(tools, gold); got != 0.5 {
		t.Errorf("recall %v", got)
	}
	if got := anyHit.of(tools, gold); got != 1 {
		t.Errorf("hit %v", got)
	}
	if got := anyHit.of(tools[:1], gold); got != 0 {
		t.Errorf("hit %v without a right tool", got)
	}
}
