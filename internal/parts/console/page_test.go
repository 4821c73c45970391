package console

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	servePage(w, r)
	return w
}

func TestFiles(t *testing.T) {
	for _, v := range []struct {
		path, kind string
		status     int
	}{
		{"/", "text/html; charset=utf-8", 200},
		{"/assets/main.js", "text/javascript; charset=utf-8", 200},
		{"/assets/views/call.js", "text/javascript; charset=utf-8", 200},
		{"/assets/style.css", "text/css; charset=utf-8", 200},
		{"/assets/icon.svg", "image/svg+xml", 200},
		{"/assets/", "text/plain; charset=utf-8", 404},
		{"/assets/nope.js", "text/plain; charset=utf-8", 404},
		{"/console.go", "text/plain; charset=utf-8", 404},
		{"/assets/../console.go", "text/plain; charset=utf-8", 404},
	} {
		w := get(t, v.path)
		if got := w.Header().Get("Content-Type"); w.Code != v.status || got != v.kind {
			t.Errorf("%s: %d %s, want %d %s", v.path, w.Code, got, v.status, v.kind)
		}
		if v.status == 200 && w.Header().Get("Content-Security-Policy") != contentPolicy {
			t.Errorf("%s: the policy is %q", v.path, w.Header().Get("Content-Security-Policy"))
		}
	}
}

// TestPolicy: the policy has no exceptions.
func TestPolicy(t *testing.T) {
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(contentPolicy, want) {
			t.Errorf("the policy has no %q", want)
		}
	}
	if strings.Contains(contentPolicy, "unsafe") || strings.Contains(contentPolicy, "*") {
		t.Errorf("the policy is %q", contentPolicy)
	}
}

func TestUnchanged(t *testing.T) {
	tag := get(t, "/assets/main.js").Header().Get("ETag")
	if w := get(t, "/assets/main.js", "If-None-Match", tag); tag == "" || w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("ETag %s: %d with %d bytes, want 304 with none", tag, w.Code, w.Body.Len())
	}
	if w := get(t, "/assets/style.css", "If-None-Match", tag); w.Code != http.StatusOK {
		t.Errorf("the tag of another file: %d, want 200", w.Code)
	}
}

// forbidden has the ways in which text could become markup or code.
var forbidden = regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|setHTML|createContextualFragment|srcdoc|\beval\b|new Function|\bFunction\(|javascript:|setTimeout\(['"` + "`" + `]|setAttribute\(['"]on|[^{]import\(|https?://[a-z]`)

// links matches references between the files.
var links = regexp.MustCompile(`(?:from |import |src="|href=")['"]?(\.?[\w./-]+\.(?:js|css|svg))`)

func TestAssets(t *testing.T) {
	files := 0
	err := fs.WalkDir(assets, "assets", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		if types[path.Ext(name)] == "" {
			t.Errorf("%s has no content type", name)
		}
		content, _ := assets.ReadFile(name)
		for i, line := range strings.Split(string(content), "\n") {
			line = strings.ReplaceAll(line, "http://www.w3.org/2000/svg", "") // a name, not an address
			line = strings.ReplaceAll(line, "https://example.com", "")        // in a message
			if found := forbidden.FindString(line); found != "" {
				t.Errorf("%s:%d has %q", name, i+1, found)
			}
			for _, m := range links.FindAllStringSubmatch(line, -1) {
				target := path.Join(path.Dir(name), m[1])
				if name == "assets/index.html" {
					target = m[1] // served at /
				}
				if _, err := assets.Open(target); err != nil {
					t.Errorf("%s:%d names %s, which is not there", name, i+1, target)
				}
			}
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Errorf("%d files, %v", files, err)
	}
}

// The page has no inline styles or scripts.
func TestPage(t *testing.T) {
	body := get(t, "/").Body.String()
	for _, m := range regexp.MustCompile(`(?i)<style|\sstyle=|\son\w+=|<script>`).FindAllString(body, -1) {
		t.Errorf("the page has %q, which the policy does not let it use", m)
	}
	for _, want := range []string{`<html lang="en">`, `name="viewport"`, `<main id="main"`, `aria-live="polite"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}
