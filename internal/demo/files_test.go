package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write fills a folder with files.
func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesCalls(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"secret.txt": "secret"})
	write(t, folder, map[string]string{
		"notes.txt":    "one\ntwo\nthree\n",
		"sub/deep.txt": "no end",
		"empty.txt":    "",
		"binary":       "a\x00b",
		"latin1":       "caf\xe9\n",
		"long line":    strings.Repeat("x", maxText+1),
		"long.txt":     strings.Repeat(strings.Repeat("y", 99)+"\n", 700),
		"many.txt":     strings.Repeat("\n", maxLines+1),
	})
	for name, target := range map[string]string{"out": outside, "out.txt": filepath.Join(outside, "secret.txt"), "in.txt": "notes.txt"} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "none"), 0o700); err != nil {
		t.Fatal(err)
	}
	const escapes = "cannot be read: path escapes from parent; paths are relative to the server's folder and stay inside it"
	c := connect(t, "files", Options{Folder: folder})
	for _, row := range []struct {
		name, tool, arguments, want string
		isError                     bool
	}{
		{"list", "list_directory", `{}`, "binary, 3 bytes\nempty.txt, 0 bytes\nin.txt\nlatin1, 5 bytes\nlong line, 65537 bytes\n" +
			"long.txt, 70000 bytes\nmany.txt, 2001 bytes\nnone/\nnotes.txt, 14 bytes\nout\nout.txt\nsub/", false},
		{"list below", "list_directory", `{"path":"sub/../sub/"}`, "deep.txt, 6 bytes", false},
		{"list nothing", "list_directory", `{"path":"none"}`, "[the folder is empty]", false},
		{"list a file", "list_directory", `{"path":"notes.txt"}`, "notes.txt is not a folder; read a file with read_file", true},
		{"list above", "list_directory", `{"path":".."}`, ".. " + escapes, true},
		{"list through a link", "list_directory", `{"path":"out"}`, "out " + escapes, true},
		{"list no path", "list_directory", `{"path":""}`, "arguments.path is missing; list_directory shows which paths there are", true},
		{"read", "read_file", `{"path":"notes.txt"}`, "one\ntwo\nthree", false},
		{"read below", "read_file", `{"path":"sub/deep.txt"}`, "no end", false},
		{"read through a link inside", "read_file", `{"path":"in.txt"}`, "one\ntwo\nthree", false},
		{"read nothing", "read_file", `{"path":"empty.txt"}`, "", false},
		{"read a line", "read_file", `{"path":"notes.txt","first_line":2,"lines":1}`, "two\n[there is more; read on with first_line=3]", false},
		{"read the last line", "read_file", `{"path":"notes.txt","first_line":3,"lines":1}`, "three", false},
		{"read behind the end", "read_file", `{"path":"notes.txt","first_line":4}`, "notes.txt has fewer than 4 lines", true},
		{"read line 0", "read_file", `{"path":"notes.txt","first_line":0}`, "arguments.first_line: lines are counted from 1", true},
		{"read too many", "read_file", `{"path":"notes.txt","lines":2001}`, "arguments.lines: expected 1 to 2000", true},
		{"read half a line", "read_file", `{"path":"notes.txt","lines":1.5}`, "arguments.lines: expected integer, got number 1.5", true},
		{"read a folder", "read_file", `{"path":"sub"}`, "sub is a folder; list it with list_directory", true},
		{"read what is missing", "read_file", `{"path":"nope"}`, "nope does not exist; list_directory shows which paths there are", true},
		{"read no path", "read_file", `{}`, "arguments.path is missing; list_directory shows which paths there are", true},
		{"read above", "read_file", `{"path":"../` + filepath.Base(outside) + `/secret.txt"}`, "../" + filepath.Base(outside) + "/secret.txt " + escapes, true},
		{"read absolute", "read_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(outside, "secret.txt")), filepath.Join(outside, "secret.txt") + " " + escapes, true},
		{"read through a link", "read_file", `{"path":"out.txt"}`, "out.txt " + escapes, true},
		{"read below a link", "read_file", `{"path":"out/secret.txt"}`, "out/secret.txt " + escapes, true},
		{"binary", "read_file", `{"path":"binary"}`, "binary: " + errNotText.Error(), true},
		{"not UTF-8", "read_file", `{"path":"latin1"}`, "latin1: " + errNotText.Error(), true},
		{"long line", "read_file", `{"path":"long line"}`, "long line: " + errNotText.Error(), true},
		{"long file", "read_file", `{"path":"long.txt"}`, strings.TrimSuffix(strings.Repeat(strings.Repeat("y", 99)+"\n", 655), "\n") + "\n[there is more; read on with first_line=656]", false},
		{"many lines", "read_file", `{"path":"many.txt"}`, strings.Repeat("\n", maxLines-1) + "\n[there is more; read on with first_line=2001]", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, isError := callTool(t, c, row.tool, row.arguments)
			if got != row.want || isError != row.isError {
				t.Errorf("got  %.300q, error %v\nwant %.300q, error %v", got, isError, row.want, row.isError)
			}
		})
	}
}

func TestFilesManyEntries(t *testing.T) {
	folder := t.TempDir()
	files := map[string]string{}
	for i := range maxEntries + 1 {
		files[fmt.Sprintf("%04d", i)] = ""
	}
	write(t, folder, files)
	got, _ := callTool(t, connect(t, "files", Options{Folder: folder}), "list_directory", `{}`)
	if !strings.HasSuffix(got, "\n[more than 1000 entries; the others are not shown]") || strings.Count(got, "\n") != maxEntries {
		t.Errorf("%d lines, the end is %q", strings.Count(got, "\n"), got[max(0, len(got)-100):])
	}
}

func TestFilesFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", map[string]string{"here.txt": "x"})
	if got, _ := callTool(t, connect(t, "files", Options{}), "list_directory", `{}`); got != "here.txt, 1 byte" {
		t.Errorf("working directory: %q", got)
	}
	err := Serve(t.Context(), "files", Options{Folder: "nowhere"}, strings.NewReader(""), os.Stdout)
	if err == nil || !strings.HasPrefix(err.Error(), "the folder cannot be opened: ") {
		t.Errorf("no folder: %v", err)
	}
}
