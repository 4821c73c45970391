package jsonc

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

const server = `{"command":"uvx","args":["a","b"],"env":{"TZ":"UTC"}}`

func TestSet(t *testing.T) {
	for _, row := range []struct {
		name, in, path, value, want string
	}{
		{"empty root", "{}", "a", `1`, "{\n  \"a\": 1\n}"},
		{"empty object", "{\n  \"s\": {}\n}\n", "s.a", server,
			"{\n  \"s\": {\n    \"a\": {\n      \"command\": \"uvx\",\n      \"args\": [\"a\", \"b\"],\n      \"env\": {\"TZ\": \"UTC\"}\n    }\n  }\n}\n"},
		{"one line", `{"s": {"a": {"x": 1}}}`, "s.b", server, `{"s": {"a": {"x": 1}, "b": {"command": "uvx", "args": ["a", "b"], "env": {"TZ": "UTC"}}}}`},
		{"compact", `{"s":{"a":{"x":1}}}`, "s.b", `{"y": 2}`, `{"s":{"a":{"x":1},"b":{"y":2}}}`},
		{"one line, nothing there", `{"s":{}}`, "s.b", `{"y": 2}`, `{"s":{"b":{"y":2}}}`},
		{"inside spaces", `{ "a": 1 }`, "b", `2`, `{ "a": 1, "b": 2 }`},
		{"tabs, all expanded", "{\n\t\"s\": {\n\t\t\"a\": {\n\t\t\t\"args\": [\n\t\t\t\t\"x\"\n\t\t\t]\n\t\t}\n\t}\n}", "s.b", `{"args":["y"],"env":{}}`,
			"{\n\t\"s\": {\n\t\t\"a\": {\n\t\t\t\"args\": [\n\t\t\t\t\"x\"\n\t\t\t]\n\t\t},\n\t\t\"b\": {\n\t\t\t\"args\": [\n\t\t\t\t\"y\"\n\t\t\t],\n\t\t\t\"env\": {}\n\t\t}\n\t}\n}"},
		{"neighbor on one line", "{\n    \"s\": {\n        \"a\": {\"x\": 1}\n    }\n}", "s.b", `{"y":2}`, "{\n    \"s\": {\n        \"a\": {\"x\": 1},\n        \"b\": {\"y\": 2}\n    }\n}"},
		{"trailing comma", "{\n  \"a\": 1,\n}\n", "b", `2`, "{\n  \"a\": 1,\n  \"b\": 2,\n}\n"},
		{"comments after the last", "{\n  \"a\": 1 // one\n  // \"off\": 2\n}\n", "b", `2`, "{\n  \"a\": 1, // one\n  // \"off\": 2\n  \"b\": 2\n}\n"},
		{"comment in an empty object", "{\n  // none yet\n}\n", "b", `2`, "{\n  // none yet\n  \"b\": 2\n}\n"},
		{"comment in an empty object on one line", "{ /* none */ }", "b", `2`, "{ /* none */ \"b\": 2 }"},
		{"line comment on the only line", "{\"a\": 1 // one\n}", "b", `2`, "{\"a\": 1, // one\n  \"b\": 2\n}"},
		{"block comment before the end", `{"a": 1 /* one */}`, "b", `2`, `{"a": 1, /* one */ "b": 2}`},
		{"CRLF", "{\r\n  \"a\": 1\r\n}\r\n", "b", `{"x":1}`, "{\r\n  \"a\": 1,\r\n  \"b\": {\r\n    \"x\": 1\r\n  }\r\n}\r\n"},
		{"byte order mark", "\ufeff{\"a\": 1}", "b", `2`, "\ufeff{\"a\": 1, \"b\": 2}"},
		{"aligned", "{\"a\": 1,\n \"b\": 2}", "c", `3`, "{\"a\": 1,\n \"b\": 2,\n \"c\": 3}"},
		{"line comment at the end of the file", "{\"a\": 1} // end", "b", `2`, "{\"a\": 1, \"b\": 2} // end"},
		{"replace", "{\n  // why\n  \"a\": {\n    \"x\": 1 // gone\n  }, // kept\n  \"b\": 2\n}", "a", `{"y":2}`, "{\n  // why\n  \"a\": {\n    \"y\": 2\n  }, // kept\n  \"b\": 2\n}"},
		{"replace on one line", `{"a": {"x": 1}, "b": 2}`, "a", `{"y":{"z":[]}}`, `{"a": {"y": {"z": []}}, "b": 2}`},
		{"replace in an array", `[1, {"a": 1}]`, "1.a", `false`, `[1, {"a": false}]`},
		{"escaped key", `{"a\u002eb": 1}`, "a\\.b", `2`, `{"a\u002eb": 2}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := mustParse(t, row.in)
			if err := d.Set([]byte(row.value), split(row.path)...); err != nil {
				t.Fatal(err)
			}
			if got := string(d.Bytes()); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

func TestAppend(t *testing.T) {
	for _, row := range []struct{ name, in, want string }{
		{"empty", `{"l": []}`, `{"l": [{"name": "x"}]}`},
		{"empty, lines", "{\n  \"l\": []\n}", "{\n  \"l\": [\n    {\n      \"name\": \"x\"\n    }\n  ]\n}"},
		{"one line", `{"l": [{"name": "a"}]}`, `{"l": [{"name": "a"}, {"name": "x"}]}`},
		{"lines", "{\"l\": [\n  {\"name\": \"a\"}, // first\n]}", "{\"l\": [\n  {\"name\": \"a\"}, // first\n  {\"name\": \"x\"},\n]}"},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := mustParse(t, row.in)
			if err := d.Append([]byte(`{"name":"x"}`), "l"); err != nil {
				t.Fatal(err)
			}
			if got := string(d.Bytes()); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	for _, row := range []struct{ name, in, path, want string }{
		{"only one", "{\n  \"s\": {\n    \"a\": 1\n  }\n}", "s.a", "{\n  \"s\": {}\n}"},
		{"only one, comment stays", "{\n  // why\n  \"a\": 1\n}", "a", "{\n  // why\n}"},
		{"first", "{\n  \"a\": 1, // about a\n  \"b\": 2\n}", "a", "{\n  \"b\": 2\n}"},
		{"last", "{\n  \"a\": 1, // about a\n  // off\n  \"b\": 2\n}", "b", "{\n  \"a\": 1 // about a\n  // off\n}"},
		{"last with a trailing comma", "{\n  \"a\": 1,\n  \"b\": 2,\n}", "b", "{\n  \"a\": 1,\n}"},
		{"middle on one line", `{"a": 1, "b": 2, "c": 3}`, "b", `{"a": 1, "c": 3}`},
		{"last on one line", `{ "a": 1, "b": 2 }`, "b", `{ "a": 1 }`},
		{"first on one line", `{ "a": 1, "b": 2 }`, "a", `{ "b": 2 }`},
		{"comments on one line stay", `{"a": 1, /* about b */ "b": 2}`, "b", `{"a": 1 /* about b */}`},
		{"line comment stays whole", "[1, // one\n 2]", "1", "[1 // one\n]"},
		{"aligned", "{\"a\": 1,\n \"b\": 2}", "b", `{"a": 1}`},
		{"several lines, CRLF", "{\r\n  \"a\": {\r\n    \"x\": 1\r\n  },\r\n  \"b\": 2\r\n}\r\n", "a", "{\r\n  \"b\": 2\r\n}\r\n"},
		{"comma first", "{ \"a\": 1\n, \"b\": 2\n}", "a", "{ \"b\": 2\n}"},
		{"element", `{"l": [1, 2, 3]}`, "l.1", `{"l": [1, 3]}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := mustParse(t, row.in)
			if err := d.Remove(split(row.path)...); err != nil {
				t.Fatal(err)
			}
			if got := string(d.Bytes()); got != row.want {
				t.Errorf("got\n%s\nwant\n%s", got, row.want)
			}
		})
	}
}

func TestNotThere(t *testing.T) {
	d := mustParse(t, `{"a": {"b": 1}, "l": [1]}`)
	for _, err := range []error{
		d.Remove("x"), d.Remove("a", "x"), d.Remove("l", "1"), d.Remove("l", "-1"), d.Set(nil, "x", "y"), d.Set([]byte("1"), "l", "1"), d.Append(nil, "x"),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
	for _, err := range []error{d.Append([]byte("1"), "a"), d.Set([]byte("1"), "a", "b", "c")} {
		if err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
	}
	if got := string(d.Bytes()); got != `{"a": {"b": 1}, "l": [1]}` {
		t.Errorf("changed to %s", got)
	}
	if d.Get("x") != nil || d.Keys("l") != nil {
		t.Error("found what is not there")
	}
}

// FuzzSetRemove: adding a member changes nothing else. Removing it again restores the
// values and the comments.
func FuzzSetRemove(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, "{\n  \"a\": {\"x\": 1}, // c\n  /* d */\n}\n", "{\"a\": [1, 2,] // c\n}", "{\r\n\t\"a\": 1\r\n}", "\ufeff{ /* c */ }", "{\"a\" /*x*/: /*y*/ 1 /*z*/ , // e\n}",
		"{\n// c\n\"a\": 1\n, \"b\": 2}",
	} {
		f.Add(seed, "n", `{"k":[1,{"x":"y"}]}`)
	}
	f.Fuzz(func(t *testing.T, src, key, value string) {
		if len(src) > 1000 || strings.Count(src, "{")+strings.Count(src, "[") > 50 || !utf8.ValidString(src+key+value) || !json.Valid([]byte(value)) || !strings.HasPrefix(value, "{") {
			return
		}
		d, err := Parse([]byte(src))
		if err != nil || d.root.Value.Kind() != '{' || d.Get(key) != nil || hasDuplicates(d.root) {
			return
		}
		before, comments := members(t, d), allComments(d.root)
		if err := d.Set([]byte(value), key); err != nil {
			t.Fatal(err)
		}
		with := members(t, d)
		var want any
		if err := json.Unmarshal([]byte(value), &want); err != nil {
			return
		}
		if got := with[key]; !reflect.DeepEqual(got, want) {
			t.Errorf("set %v, want %v in %q", got, want, d.Bytes())
		}
		delete(with, key)
		if !reflect.DeepEqual(with, before) {
			t.Errorf("other members changed: %v, %v", before, with)
		}
		if err := d.Remove(key); err != nil {
			t.Fatal(err)
		}
		if got := members(t, d); !reflect.DeepEqual(got, before) {
			t.Errorf("%q became %q", src, d.Bytes())
		}
		if got := allComments(d.root); !slices.Equal(got, comments) {
			t.Errorf("comments %q became %q", comments, got)
		}
	})
}

func hasDuplicates(root hujson.Value) bool {
	for v := range root.All() {
		c, ok := newContainer(v)
		seen := map[string]bool{}
		for i := range c.keys {
			if ok && seen[c.keys[i]] {
				return true
			}
			seen[c.keys[i]] = true
		}
	}
	return false
}

func members(t *testing.T, d *Document) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal(d.Get(), &m); err != nil {
		t.Skip(err) // a number that does not fit a float
	}
	return m
}

// allComments returns the comments of a document, sorted.
func allComments(root hujson.Value) (found []string) {
	add := func(extra hujson.Extra) {
		for _, comment := range comments.FindAll(extra, -1) {
			found = append(found, strings.TrimSpace(string(comment)))
		}
	}
	for v := range root.All() {
		add(v.BeforeExtra)
		add(v.AfterExtra)
		switch value := v.Value.(type) {
		case *hujson.Object:
			add(value.AfterExtra)
		case *hujson.Array:
			add(value.AfterExtra)
		}
	}
	slices.Sort(found)
	return found
}

func mustParse(t *testing.T, src string) *Document {
	t.Helper()
	d, err := Parse([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// split separates a path at its dots. An escaped dot is part of a key.
func split(path string) []string {
	parts := strings.Split(strings.ReplaceAll(path, `\.`, "\x00"), ".")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "\x00", ".")
	}
	return parts
}
