package listcache

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestCache(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "catalog")
	c := New(folder, zerolog.Nop())
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
	if info, err := os.Stat(c.path(u)); err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("the file has mode %v, %v", info.Mode(), err)
	}
	for _, damaged := range []string{"", "{", `[]`, `{"listed":"2001-01-01T00:00:00Z"}`} {
		if err := os.WriteFile(c.path(u), []byte(damaged), 0o600); err != nil {
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
