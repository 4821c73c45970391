package cli

import (
	"errors"
	"os"
	"slices"
	"testing"
)

func TestSplitConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("time", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, flag string
		words      []string
		needed     int
		file       string
		rest       []string
	}{
		{"ends in .json", "", []string{"new.json", "a"}, 1, "new.json", []string{"a"}},
		{"ends in .jsonc", "", []string{"new.jsonc", "a"}, 1, "new.jsonc", []string{"a"}},
		{"is a file", "", []string{"time", "a"}, 1, "time", []string{"a"}},
		{"is a folder", "", []string{"folder", "a"}, 1, "", []string{"folder", "a"}},
		{"is no file", "", []string{"a", "b"}, 1, "", []string{"a", "b"}},
		{"a server may have the name of a file", "", []string{"time"}, 1, "", []string{"time"}},
		{"flag", "x", []string{"a"}, 1, "x", []string{"a"}},
		{"nothing", "", nil, 1, "", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			file, rest, err := splitConfig(row.flag, row.words, row.needed)
			if err != nil || file != row.file || !slices.Equal(rest, row.rest) {
				t.Errorf("%q, %q, %v", file, rest, err)
			}
		})
	}
	_, _, err := splitConfig("x", []string{"new.json", "a"}, 1)
	var advice hinted
	if !errors.As(err, &usageError{}) || !errors.As(err, &advice) || advice.hint != "leave one of them out" {
		t.Errorf("got %v", err)
	}
}
