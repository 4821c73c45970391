package demo

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of one result.
const (
	maxEntries = 1000
	maxLines   = 2000
	maxText    = 64 << 10 // bytes
)

// folder is the folder that the server files shows. os.Root keeps every path
// inside it, links included.
type folder struct{ root *os.Root }

func filesServer(o Options) (*server, error) {
	path, err := filepath.Abs(cmp.Or(o.Folder, "."))
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path) // stays open until the process ends
	if err != nil {
		return nil, fmt.Errorf("the folder cannot be opened: %w", err)
	}
	f := &folder{root}
	return &server{
		instructions: "Paths are relative to " + path + ". Nothing outside it can be read, and nothing can be changed.",
		tools: []tool{{
			Name: "list_directory", Title: "List a folder",
			Description: "List the files of a folder, with their sizes. Folders end with a slash.",
			Input: schema(`{"type":"object","properties":{
				"path":{"type":"string","description":"Folder, relative to the server's folder","default":"."}
			},"additionalProperties":false}`),
			run: with(listArguments{"."}, f.list),
		}, {
			Name: "read_file", Title: "Read a text file",
			Description: "Read a text file, or some of its lines.",
			Input: schema(`{"type":"object","properties":{
				"path":{"type":"string","description":"File, relative to the server's folder"},
				"first_line":{"type":"integer","description":"Line to start at","minimum":1,"default":1},
				"lines":{"type":"integer","description":"How many lines to read","minimum":1,"maximum":2000,"default":2000}
			},"required":["path"],"additionalProperties":false}`),
			run: with(readArguments{First: 1, Lines: maxLines}, f.read),
		}},
	}, nil
}

type listArguments struct{ Path string }

func (f *folder) list(_ context.Context, _ *call, a listArguments) (*result, error) {
	dir, err := f.open(a.Path, fs.ModeDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(maxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, explain(a.Path, err)
	}
	more := len(entries) > maxEntries
	entries = entries[:min(len(entries), maxEntries)]
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case e.IsDir():
			fmt.Fprintf(&b, "%s/\n", e.Name())
		case err == nil && e.Type().IsRegular():
			fmt.Fprintf(&b, "%s, %s\n", e.Name(), size(info.Size()))
		default:
			fmt.Fprintf(&b, "%s\n", e.Name())
		}
	}
	switch {
	case more:
		fmt.Fprintf(&b, "[more than %d entries; the others are not shown]", maxEntries)
	case len(entries) == 0:
		b.WriteString("[the folder is empty]")
	}
	return text("%s", strings.TrimSuffix(b.String(), "\n")), nil
}

func size(bytes int64) string {
	if bytes == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", bytes)
}

type readArguments struct {
	Path  string
	First int `json:"first_line"`
	Lines int
}

func (f *folder) read(_ context.Context, _ *call, a readArguments) (*result, error) {
	if a.First < 1 {
		return nil, errors.New("arguments.first_line: lines are counted from 1")
	}
	if err := inRange("lines", a.Lines, 1, maxLines); err != nil {
		return nil, err
	}
	file, err := f.open(a.Path, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines, rest, err := readLines(file, a.First, a.Lines)
	switch {
	case err != nil:
		return nil, explain(a.Path, err)
	case lines == "" && a.First > 1:
		return nil, fmt.Errorf("%s has fewer than %d lines", a.Path, a.First)
	}
	r := text("%s", strings.TrimSuffix(lines, "\n"))
	if rest > 0 {
		r.Content = append(r.Content, content{Type: "text", Text: fmt.Sprintf("[there is more; read on with first_line=%d]", rest)})
	}
	return r, nil
}

// errNotText marks a file that is not text, or has a line that is too long.
var errNotText = errors.New("not a text file with lines of usual length; only text can be read")

// readLines reads at most n lines from line first on, and at most maxText bytes.
// rest is the first line that was left out, 0 at the end of the file.
func readLines(file io.Reader, first, n int) (lines string, rest int, err error) {
	var b strings.Builder
	in := bufio.NewReaderSize(file, maxText)
	for line := 1; ; line++ {
		piece, err := in.ReadSlice('\n')
		atEnd := errors.Is(err, io.EOF)
		switch {
		case atEnd && len(piece) == 0:
			return b.String(), 0, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return "", 0, errNotText
		case err != nil && !atEnd:
			return "", 0, err
		case line < first:
			continue
		case line-first == n || b.Len()+len(piece) > maxText:
			return b.String(), line, nil
		case !utf8.Valid(piece) || strings.ContainsRune(string(piece), 0):
			return "", 0, errNotText
		}
		b.Write(piece)
	}
}

// open opens a file or a folder. Others, such as pipes, could block forever.
func (f *folder) open(path string, want fs.FileMode) (*os.File, error) {
	info, err := f.root.Stat(path)
	if err != nil {
		return nil, explain(path, err)
	}
	switch got := info.Mode().Type(); {
	case got == want:
	case got == fs.ModeDir:
		return nil, fmt.Errorf("%s is a folder; list it with list_directory", path)
	case want == fs.ModeDir:
		return nil, fmt.Errorf("%s is not a folder; read a file with read_file", path)
	default:
		return nil, fmt.Errorf("%s is neither a file nor a folder", path)
	}
	file, err := f.root.Open(path)
	if err != nil {
		return nil, explain(path, err)
	}
	return file, nil
}

// explain returns an error that says what is wrong with a path, and what to do.
func explain(path string, err error) error {
	cause, isPath := errors.AsType[*fs.PathError](err)
	switch {
	case path == "":
		return errors.New("arguments.path is missing; list_directory shows which paths there are")
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist; list_directory shows which paths there are", path)
	case isPath:
		return fmt.Errorf("%s cannot be read: %w; paths are relative to the server's folder and stay inside it", path, cause.Err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
