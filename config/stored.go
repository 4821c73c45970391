package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"mcpx/internal/jsonc"
	"mcpx/internal/plain"
	"mcpx/internal/reference"
)

// Resolve reads the upstream's stored secrets (${file:PATH}, ${keyring:NAME} and
// {"cmd": […]}) and returns the upstream with them filled in. It is called for each start,
// so that a start gets the newest values. The error names the references that could not be
// read. From then on, Redact hides the secrets.
func (u *Upstream) Resolve(ctx context.Context) (*Upstream, error) {
	if !u.isDeferred {
		return u, nil
	}
	x := expansion{environment: u.environment, ctx: ctx}
	resolved := *u
	resolved.isDeferred = false
	x.upstream(&resolved)
	u.secrets.Add(secrets(&resolved, x.values))
	if err := x.err(); err != nil {
		return nil, err
	}
	return &resolved, unusable(&resolved)
}

// stored returns the stored secret of a reference.
func (x *expansion) stored(place string, p reference.Part) string {
	if x.ctx == nil {
		x.isDeferred = true
		return p.Text
	}
	value, err := x.readStored(p)
	return x.readValue(place, p.Text, value, err)
}

// command returns what a command prints.
func (x *expansion) command(place string, words []string) string {
	expanded := make([]string, len(words))
	for i, word := range words {
		expanded[i] = x.text(place, word)
	}
	if x.ctx == nil {
		x.isDeferred = true
		return ""
	}
	value, err := x.Secrets.Run(x.ctx, expanded, x.folder)
	return x.readValue(place, `{"cmd": …}`, value, err)
}

// readValue records what was read. Its name makes it a secret even if it looks ordinary.
func (x *expansion) readValue(place, reference, value string, err error) string {
	if err != nil {
		x.fail(place, reference, ": "+err.Error())
		return ""
	}
	x.values = append(x.values, variable{"secret", value})
	return value
}

// readStored reads a stored secret.
func (x *expansion) readStored(p reference.Part) (string, error) {
	switch {
	case x.isDry:
		return "", nil
	case p.Place == reference.File:
		return x.readSecret(p.Name)
	}
	return x.Secrets.Get(x.ctx, p.Name)
}

// secretPath returns the path of a file with a secret. It is relative to the config file.
func (e environment) secretPath(name string) string { return e.absolute(e.withHome(name)) }

// readSecret reads a file with a secret.
func (e environment) readSecret(name string) (string, error) {
	path := e.secretPath(name)
	data, err := ReadFile(path, 1<<20)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s does not exist", path)
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("%s may not be read; check its permissions", path)
	case err != nil:
		return "", err
	case len(data) > MaxSecret:
		return "", fmt.Errorf("%s has more than %d KiB; check that this is the right file", path, MaxSecret>>10)
	}
	value := plain.WithoutLineBreak(string(data))
	if value == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return value, nil
}

// referenceKeys are the keys of a server whose texts may have references.
var referenceKeys = []string{"command", "args", "env", "cwd", "url", "headers", "auth"}

// warnFiles warns about ${file:PATH} references to files that are missing, or that others
// can read.
func (r *reader) warnFiles(n jsonc.Node) {
	for _, key := range referenceKeys {
		if m, ok := n.Member(key); ok {
			r.warnFile(m.Value)
		}
	}
}

func (r *reader) warnFile(n jsonc.Node) {
	for _, m := range n.Members() {
		r.warnFile(m.Value)
	}
	for _, e := range n.Elements() {
		r.warnFile(e)
	}
	if n.Kind() != '"' {
		return
	}
	parts, _ := reference.Split(n.Text()) // a mistake is reported elsewhere
	for _, p := range parts {
		if p.Place != reference.File {
			continue
		}
		path := r.environment.secretPath(p.Name)
		const readableByOthers = 0o044
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
			r.Warn(n, "%s does not exist; create it before the server starts", path)
		case err == nil && info.Mode().IsRegular() && info.Mode().Perm()&readableByOthers != 0 && runtime.GOOS != "windows":
			r.Warn(n, "other users can read %s; run chmod 600 on it", path)
		}
	}
}
