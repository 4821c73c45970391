// Package console is the page that people use mcpx with: a dashboard and a
// tester. It is an MCP client like any other, so it has no way of its own into
// an upstream: all that is here is the files of the page.
package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var assets embed.FS

// policy lets the page load its own files and talk to its own server, and
// nothing else: what an upstream sends is never run, nor sent anywhere.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// types are the content types of the files. Those that the system knows may be
// others, and a script of the wrong type is not run.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Handler serves the page at / and its files below /assets/.
func Handler() http.Handler {
	files := load()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name == "" {
			name = "assets/index.html"
		}
		f, ok := files[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Content-Type", f.kind)
		h.Set("Cache-Control", "no-cache") // kept, but asked for again: a new mcpx brings a new page
		h.Set("ETag", f.tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(f.content))
	})
}

type file struct {
	kind, tag string
	content   []byte
}

// load reads the files, by their paths.
func load() map[string]file {
	files := map[string]file{}
	err := fs.WalkDir(assets, "assets", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := assets.ReadFile(name)
		files[name] = file{types[path.Ext(name)], fmt.Sprintf(`"%x"`, sha256.Sum256(content)), content}
		return err
	})
	if err != nil {
		panic(err) // they are part of the program
	}
	return files
}
