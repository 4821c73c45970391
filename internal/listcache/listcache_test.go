package listcache

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestCache(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "catalog")
	c := New(folder, filepath.Join(t.TempDir(), "state", "key"), zerolog.Nop())
	const u = "key"
	if _, ok := c.Load(u); ok {
		t.Error("found in an empty cache")
	}
	old := filepath.Join(folder, "old.json")
	left := filepath.Join(folder, ".key.json.mcpx-1")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, age := range map[string]time.Duration{old: maxAge + time.Hour, left: maxAge + time.Hour} {
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, time.Time{}, time.Now().Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	content := &Entry{Listed: time.Now(), Instructions: "<é>", Lists: map[string][]json.RawMessage{"tools/list": {json.RawMessage(`{"name":"t","n":12345678901234567890,"x":"<&>"}`)}}}
	if err := c.Save(u, content); err != nil {
		t.Fatal(err)
	}
	found, ok := c.Load(u)
	if !ok || found.Instructions != "<é>" || string(found.Lists["tools/list"][0]) != `{"name":"t","n":12345678901234567890,"x":"<&>"}` {
		t.Errorf("loaded %+v", found)
	}
	entries, _ := os.ReadDir(folder)
	if len(entries) != 1 || !strings.HasSuffix(entries[0].Name(), ".json") {
		t.Errorf("the folder has %v", entries)
	}
	by, err := c.signer.existing()
	if err != nil {
		t.Fatal(err)
	}
	file := c.path(u, by)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(text string) string { return string(by.sign(u, []byte(text))) }
	_, unsigned, _ := strings.Cut(string(whole), "\n")
	for _, damaged := range []string{
		"", "{", signed("{"), signed(`[]`), signed(`{"listed":"2001-01-01T00:00:00Z"}`),
		unsigned, "\n" + unsigned, strings.Repeat("0", 64) + "\n" + unsigned,
		strings.Replace(string(whole), "é", "e", 1), string(by.sign("another", []byte(unsigned))),
	} {
		if err := os.WriteFile(file, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := c.Load(u); ok {
			t.Errorf("a damaged file is used: %q", damaged)
		}
	}
	content.Instructions = strings.Repeat("x", maxFile)
	if err := c.Save(u, content); err == nil {
		t.Error("a file that is too long was saved")
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Error("a temporary file is left")
	}
}

// TestKey: several processes that start at once use one key. A key of another user, a key that
// others could read, and a damaged one sign nothing.
func TestKey(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	state, folder := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "catalog")
	keyFile := filepath.Join(state, "key")
	content := &Entry{Listed: time.Now(), Instructions: "text"}
	load := func(keyFile string) bool {
		_, ok := New(folder, keyFile, zerolog.Nop()).Load("u")
		return ok
	}
	if load(keyFile) {
		t.Error("found without a key")
	}
	if _, err := os.Stat(keyFile); err == nil {
		t.Error("reading has created a key")
	}
	var processes sync.WaitGroup
	for range 8 {
		processes.Go(func() {
			if err := New(folder, keyFile, zerolog.Nop()).Save("u", content); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	if entries, _ := os.ReadDir(folder); len(entries) != 1 || !load(keyFile) {
		t.Errorf("the folder has %v", entries)
	}
	if info, err := os.Stat(keyFile); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
	other := filepath.Join(t.TempDir(), "state", "key") // of another user or machine with the same cache
	if load(other) {
		t.Error("an entry of another key is used")
	}
	if err := New(folder, other, zerolog.Nop()).Save("u", content); err != nil || !load(other) || !load(keyFile) {
		t.Errorf("two keys cannot share a folder: %v", err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(keyFile, 0o644); err != nil { //nolint:gosec // on purpose
			t.Fatal(err)
		}
		var repaired []string
		c := New(folder, keyFile, zerolog.Nop())
		c.OnRepair(func(path string) { repaired = append(repaired, path) })
		if _, ok := c.Load("u"); ok {
			t.Error("a key that others could read is used")
		}
		if !slices.Equal(repaired, []string{keyFile}) {
			t.Errorf("repaired %q, want the key", repaired)
		}
	}
	if err := os.WriteFile(keyFile, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if load(keyFile) {
		t.Error("a short key is used")
	}
	if err := New(folder, keyFile, zerolog.Nop()).Save("u", content); err != nil || !load(keyFile) {
		t.Errorf("after a damaged key: %v", err)
	}
	if err := New(folder, filepath.Join(keyFile, "key"), zerolog.Nop()).Save("u", content); err == nil {
		t.Error("saved without a place for the key")
	}
}
