package config

import (
	"slices"

	"github.com/tailscale/hujson"

	"mcpx/internal/jsonfile"
	"mcpx/internal/nearest"
)

// reader reads the file and collects its problems.
type reader struct {
	*jsonfile.File
	environment environment
}

// object reads the members of an object into its fields.
func (r *reader) object(n jsonfile.Node, fields []field) {
	if !r.is(n, '{', "object") {
		return
	}
	for _, m := range n.Members() {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == m.Key })
		if i >= 0 {
			fields[i].kind.read(r, m.Value)
			continue
		}
		if !r.MayWarn() {
			continue // the warning is dropped
		}
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.name
		}
		if near := nearest.Word(m.Key, names); near != "" {
			r.Warn(m.Name, "unknown key; did you mean %q?", near)
		} else {
			r.Warn(m.Name, "unknown key; ignored")
		}
	}
}

// is reports whether a value has the expected kind, and fails otherwise.
func (r *reader) is(n jsonfile.Node, kind hujson.Kind, want string) bool {
	if n.Kind() == kind {
		return true
	}
	r.Fail(n, "expected %s, got %s", want, n.Describe())
	return false
}

// text returns a string that passes the checks.
func (r *reader) text(n jsonfile.Node, checks ...check) (string, bool) {
	if kind := n.Kind(); kind == '0' || kind == 't' || kind == 'f' {
		r.Fail(n, "expected string, got %s; write %q", n.Describe(), n.Literal())
		return "", false
	}
	if !r.is(n, '"', "string") {
		return "", false
	}
	s := n.Text()
	return s, r.check(n, s, checks)
}

// check reports whether a text passes the checks, and fails otherwise.
func (r *reader) check(n jsonfile.Node, s string, checks []check) bool {
	for _, check := range checks {
		if err := check(s); err != nil {
			r.Fail(n, "%v", err)
			return false
		}
	}
	return true
}
