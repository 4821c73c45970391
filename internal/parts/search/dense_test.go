package search

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/registry/lists"
	"mcpx/registry/live"
)

// meanings are the words of each dimension of the fake endpoint.
var meanings = [][]string{{"cat", "kitten", "feline"}, {"ship", "vessel", "boat"}, {"bread", "loaf"}, {"a"}}

// fakeEndpoint is an endpoint that knows a few meanings.
type fakeEndpoint struct {
	*httptest.Server
	status int
	wait   chan struct{} // if it is not nil, responses wait until it is closed

	mu      sync.Mutex
	inputs  []string
	headers []string
}

func newFakeEndpoint(t *testing.T) *fakeEndpoint {
	t.Helper()
	f := &fakeEndpoint{status: http.StatusOK}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model string
		Input []string
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Model != "tiny" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.inputs = append(f.inputs, request.Input...)
	f.headers = append(f.headers, r.Header.Get("Authorization"))
	f.mu.Unlock()
	if f.wait != nil {
		select {
		case <-f.wait:
		case <-r.Context().Done():
			return
		}
	}
	w.WriteHeader(f.status)
	var data []any
	for i, text := range request.Input {
		data = append(data, map[string]any{"index": i, "embedding": meaningOf(text)})
	}
	slices.Reverse(data) // the order says nothing
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

func meaningOf(text string) []float64 {
	vector := make([]float64, len(meanings))
	for i, words := range meanings {
		for _, word := range words {
			vector[i] += float64(strings.Count(strings.ToLower(text), word))
		}
	}
	vector[len(vector)-1] = 0.1 // no vector is zero
	return vector
}

// asked returns the texts that were sent since the last call.
func (f *fakeEndpoint) asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.inputs
	f.inputs = nil
	return asked
}

// settings returns the settings for the endpoint.
func (f *fakeEndpoint) settings(t *testing.T) Settings {
	t.Helper()
	file := fmt.Sprintf(`{"mcpServers": {}, "search": {"embeddings": {"url": "%s/v1/embeddings?key=rosebud-rosebud", "model": "tiny", "headers": {"Authorization": "Bearer ${KEY}"}}}}`, f.URL)
	c, err := config.Hooks{Sections: []config.Section{Section}}.Parse("/etc/mcpx.json", []byte(file), func(string) (string, bool) { return "open-sesame", true })
	if err != nil {
		t.Fatal(err)
	}
	return Section.Of(c.Parts)
}

// search returns a Search with the endpoint, and the lines it logs.
func (f *fakeEndpoint) search(t *testing.T, folder string) (*Search, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s := New(folder, zerolog.New(&log))
	s.Apply(f.settings(t))
	t.Cleanup(s.Close)
	return s, &log
}

func animals() *toolIndex {
	return newToolIndex([]*live.Upstream{live.NewUpstream("zoo", []lists.Item{
		{Key: "feed_cat", Raw: []byte(`{"name":"feed_cat","description":"Feeds a cat."}`)},
		{Key: "sail_ship", Raw: []byte(`{"name":"sail_ship","description":"Sails a ship."}`)},
		{Key: "bake_bread", Raw: []byte(`{"name":"bake_bread","description":"Bakes bread."}`)},
		{Key: "sell", Raw: []byte(`{"name":"sell","description":"Sells things."}`)},
	})})
}

// found returns the names of the tools that a search finds.
func found(t *testing.T, s *Search, x *toolIndex, query string) (names []string) {
	t.Helper()
	hits, _ := s.find(t.Context(), x, query, 2)
	for _, h := range hits {
		names = append(names, x.tools[h.document].tool.Name)
	}
	return names
}

// TestEmbeddings: with an endpoint, search finds tools by meaning. Vectors of tools are made
// once, also for later processes, and not before the first search.
func TestEmbeddings(t *testing.T) {
	f, folder := newFakeEndpoint(t), filepath.Join(t.TempDir(), "mcpx", "vectors")
	s, log := f.search(t, folder)
	x := animals()
	if asked := f.asked(); asked != nil {
		t.Errorf("before the first search, the endpoint gets %q", asked)
	}
	if got := found(t, s, x, "feline"); !slices.Contains(got, "feed_cat") {
		t.Errorf("found %q", got)
	}
	if asked := f.asked(); len(asked) != 5 || !slices.Contains(asked, "feline") || !slices.Contains(asked, "zoo: feed_cat\nFeeds a cat.\n") {
		t.Errorf("the endpoint gets %q", asked)
	}
	if got := found(t, s, x, "sell a vessel"); !slices.Equal(got, []string{"sell", "sail_ship"}) {
		t.Errorf("words and meaning: %q", got)
	}
	found(t, s, x, "feline")
	if asked := f.asked(); !slices.Equal(asked, []string{"sell a vessel"}) {
		t.Errorf("after the first search, the endpoint gets %q", asked)
	}
	s.Close()
	again, _ := f.search(t, folder)
	if got := found(t, again, animals(), "loaf"); !slices.Contains(got, "bake_bread") {
		t.Errorf("a later process finds %q", got)
	}
	if asked := f.asked(); !slices.Equal(asked, []string{"loaf"}) {
		t.Errorf("for a later process, the endpoint gets %q", asked)
	}
	if f.headers[0] != "Bearer open-sesame" || log.Len() > 0 {
		t.Errorf("headers %q, log %s", f.headers, log)
	}
	checkPrivate(t, folder)
}

// checkPrivate checks that only the user can read the folder and its one file.
func checkPrivate(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for path, want := range map[string]fs.FileMode{folder: 0o700, files[0]: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v, want %v", path, info.Mode().Perm(), err, want)
		}
	}
}

// TestEmbeddingsFail: an endpoint that fails or is slow leaves the result by words, is logged
// once, and gets no requests for a while. The log has no secrets.
func TestEmbeddingsFail(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(f *fakeEndpoint)
		want   string
	}{
		{"it refuses", func(f *fakeEndpoint) { f.status = http.StatusUnauthorized }, "it responds with status 401"},
		{"it redirects", func(f *fakeEndpoint) { f.status = http.StatusTemporaryRedirect }, "it responds with status 307"},
		{"it is slow", func(f *fakeEndpoint) { f.wait = make(chan struct{}) }, "it does not respond in time"},
		{"it is gone", func(f *fakeEndpoint) { f.Close() }, "connection refused"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFakeEndpoint(t)
			s, log := f.search(t, t.TempDir())
			s.dense.patience = 50 * time.Millisecond
			row.change(f)
			x := animals()
			start := time.Now()
			for range 3 {
				if got := found(t, s, x, "cat"); !slices.Equal(got, []string{"feed_cat"}) {
					t.Errorf("found %q", got)
				}
			}
			if took := time.Since(start); took > denseTime {
				t.Errorf("three searches took %s", took)
			}
			s.Close()
			if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), row.want) {
				t.Errorf("the log has %d lines: %s", lines, log)
			}
			for _, secret := range []string{"rosebud", "sesame"} {
				if strings.Contains(log.String(), secret) {
					t.Errorf("%s is in the log: %s", secret, log)
				}
			}
		})
	}
}

// TestApply: a reload turns embeddings on and off.
func TestApply(t *testing.T) {
	f := newFakeEndpoint(t)
	s := New("", zerolog.Nop())
	x := animals()
	for range 2 {
		if got := found(t, s, x, "kitten"); got != nil {
			t.Errorf("without the key, found %q", got)
		}
		s.Apply(f.settings(t))
		if got := found(t, s, x, "kitten"); !slices.Contains(got, "feed_cat") {
			t.Errorf("with the key, found %q", got)
		}
		s.Apply(Settings{})
	}
	s.Close()
}

func TestParseVectors(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":         `<html>`,
		"too few":         `{"data":[{"index":0,"embedding":[1]}]}`,
		"one twice":       `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`,
		"out of range":    `{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[1]}]}`,
		"different sizes": `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`,
		"empty":           `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`,
		"zero":            `{"data":[{"index":0,"embedding":[0]},{"index":1,"embedding":[1]}]}`,
		"too large":       `{"data":[{"index":0,"embedding":[1e300]},{"index":1,"embedding":[1]}]}`,
	} {
		if got, err := parseVectors([]byte(text), 2); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	got, err := parseVectors([]byte(`{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[0,2]}]}`), 2)
	if err != nil || !slices.Equal(got[0], []float32{0, 1}) || !slices.Equal(got[1], []float32{0.6, 0.8}) {
		t.Errorf("%v, %v", got, err)
	}
}

// testVectors returns vectors in a file, with room for that many of two dimensions.
func testVectors(folder string, room int) *vectors {
	v := newVectors(folder, Embeddings{Model: "tiny"})
	v.maxBytes = headerBytes + room*recordBytes(2)
	return v
}

func TestVectorsAreBounded(t *testing.T) {
	folder := t.TempDir()
	v := testVectors(folder, 3)
	keys := []vectorKey{{1}, {2}, {3}, {4}}
	for i, key := range keys {
		v.add([]vectorKey{key}, [][]float32{{float32(i), 1}})
	}
	if err := v.save(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(v.file)
	if err != nil || info.Size() > int64(v.maxBytes) {
		t.Errorf("the file has %d bytes, %v, want at most %d", info.Size(), err, v.maxBytes)
	}
	for name, v := range map[string]*vectors{"in memory": v, "in the file": testVectors(folder, 3)} {
		if got := v.get(keys); got[0] != nil || !slices.Equal(got[1], []float32{1, 1}) || !slices.Equal(got[3], []float32{3, 1}) {
			t.Errorf("%s: %v", name, got)
		}
	}
	v.add([]vectorKey{{5}}, [][]float32{{1, 2, 3}})
	if got := v.get(keys); got[3] != nil || len(v.order) != 1 {
		t.Errorf("vectors of another size are kept: %v", got)
	}
}

func TestVectorFileIsChecked(t *testing.T) {
	folder := t.TempDir()
	v := testVectors(folder, 3)
	v.add([]vectorKey{{1}}, [][]float32{{1, 2}})
	if err := v.save(); err != nil {
		t.Fatal(err)
	}
	valid, err := os.ReadFile(v.file)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"empty":         nil,
		"cut":           valid[:len(valid)-1],
		"another form":  append([]byte("x"), valid[1:]...),
		"no dimensions": append([]byte(vectorMagic), 0, 0, 0, 0),
		"too many":      append([]byte(vectorMagic), 255, 255, 255, 255),
		"too long":      append(slices.Clone(valid), make([]byte, 10*recordBytes(2))...),
		"no number":     append(slices.Clone(valid[:len(valid)-4]), 0, 0, 0xc0, 0x7f),
	} {
		if err := os.WriteFile(v.file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := testVectors(folder, 3).get([]vectorKey{{1}}); got[0] != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestUnusedVectorFilesAreRemoved(t *testing.T) {
	folder := t.TempDir()
	old := filepath.Join(folder, "old.vectors")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * maxVectorAge)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	v := testVectors(folder, 3)
	v.add([]vectorKey{{1}}, [][]float32{{1, 2}})
	if err := v.save(); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(folder, "*")); !slices.Equal(files, []string{v.file}) {
		t.Errorf("files %q", files)
	}
}
