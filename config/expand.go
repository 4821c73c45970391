package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"mcpx/internal/redact"
	"mcpx/internal/reference"
)

// resolve expands references to variables and makes paths absolute. References to stored
// secrets are left for Upstream.Resolve.
func (c *Config) resolve(e environment) {
	if c.Logging.File != "" {
		c.Logging.File = e.absolute(c.Logging.File)
	}
	for i := range c.Profiles {
		p := &c.Profiles[i]
		for j, written := range p.all {
			p.all[j] = e.resolve(written)
			p.all[j].inherit(c)
		}
		p.Upstreams = slices.DeleteFunc(slices.Clone(p.all), func(u Upstream) bool { return u.disabled })
	}
}

// lazyIdleStop is the idle time of lazy upstreams if the file does not set it.
const lazyIdleStop = 15 * time.Minute

// inherit fills in the settings that the top level has for all upstreams.
func (u *Upstream) inherit(c *Config) {
	u.Start = cmp.Or(u.Start, c.Start)
	if u.Isolation == PerUser {
		u.Start = StartLazy // nobody knows whose session to open
	}
	if u.IdleStop == unset {
		u.IdleStop = c.IdleStop
	}
	if u.IdleStop == unset {
		u.IdleStop = 0
		if u.Start == StartLazy {
			u.IdleStop = lazyIdleStop
		}
	}
}

// StartAll makes all upstreams eager.
func (c *Config) StartAll() {
	for i := range c.Profiles {
		for j := range c.Profiles[i].Upstreams {
			u := &c.Profiles[i].Upstreams[j]
			u.Start, u.IdleStop = StartEager, 0
		}
	}
}

// ForOneCommand changes the config for a command that runs once: all upstreams are eager,
// results stay whole, because a handle would end with the command, and mcpx logs at this level.
// Show still shows the config as it was before.
func (c *Config) ForOneCommand(logLevel string) {
	unchanged := *c
	c.unchanged = &unchanged
	c.StartAll()
	c.Logging.Level, c.Limits.ResultTokens = logLevel, 0
}

// environment has what the file refers to: variables, folders and stored secrets.
type environment struct {
	Hooks
	lookup Lookup
	folder string // of the config file, absolute
	isDry  bool   // stored secrets are not read; they are empty
}

// resolve returns an upstream with its variables expanded and its folder absolute.
func (e environment) resolve(written Upstream) Upstream {
	x := expansion{environment: e}
	u := written
	u.written, u.environment = &written, e
	x.upstream(&u)
	u.isDeferred = x.isDeferred
	u.Err = x.err()
	if u.Err == nil && !u.isDeferred {
		u.Err = unusable(&u)
	}
	if u.Sandbox != nil {
		u.Sandbox = e.sandbox(*u.Sandbox)
		u.Err = cmp.Or(u.Err, sandboxable(u.Sandbox, runtime.GOOS))
	}
	u.secrets = redact.NewSet(slices.DeleteFunc(secrets(&u, x.values), reference.HasStored)) // messages name the references
	return u
}

// upstream expands an upstream from what is written in the file.
func (x *expansion) upstream(u *Upstream) {
	w := u.written
	u.Command = x.path("command", w.Command)
	u.Args = nil
	for i, arg := range w.Args {
		u.Args = append(u.Args, x.text(fmt.Sprintf("args[%d]", i), arg))
	}
	u.Env = x.dict("env", w.Env, w.commands)
	if w.Dir != "" {
		u.Dir = x.absolute(x.path("cwd", w.Dir))
	}
	u.URL = x.text("url", w.URL)
	u.Headers = x.dict("headers", w.Headers, w.commands)
	u.addForwarded()
	u.Auth.ClientID = x.text("auth.client_id", w.Auth.ClientID)
	u.Auth.ClientSecret = x.text("auth.client_secret", w.Auth.ClientSecret)
	u.Auth.PrivateKey = x.text("auth.private_key", w.Auth.PrivateKey)
}

var errExpandedEmpty = errors.New("is empty once its variables are expanded; set them")

// unusable reports expanded values that cannot be used. It does not repeat them: they
// may be secrets.
func unusable(u *Upstream) error {
	if u.URL != "" && webURL(u.URL) != nil {
		return errors.New("url: not an absolute http or https url once its variables are expanded; check their values")
	}
	for _, a := range []struct{ key, written, value string }{
		{"client_id", u.written.Auth.ClientID, u.Auth.ClientID},
		{"client_secret", u.written.Auth.ClientSecret, u.Auth.ClientSecret},
		{"private_key", u.written.Auth.PrivateKey, u.Auth.PrivateKey},
	} {
		if a.written != "" && a.value == "" {
			return fmt.Errorf("auth.%s: %w", a.key, errExpandedEmpty)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.Env)) {
		if strings.Contains(u.Env[name], "\x00") {
			return fmt.Errorf("env.%s: the value has a NUL byte; variables cannot have one", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.Headers)) {
		if strings.ContainsAny(u.Headers[name], "\r\n\x00") {
			return fmt.Errorf("headers.%s: the value has a line break; headers cannot have one", name)
		}
	}
	return nil
}

// sandbox returns a sandbox whose paths do not start with ~/.
func (e environment) sandbox(s Sandbox) *Sandbox {
	s.Write = slices.Clone(s.Write)
	for i, path := range s.Write {
		s.Write[i] = e.withHome(path)
	}
	return &s
}

// sandboxable returns an error if a system cannot restrict an upstream.
func sandboxable(s *Sandbox, system string) error {
	if system == "linux" || s.BestEffort {
		return nil
	}
	return errors.New(NoSandbox)
}

// withHome replaces ~/ at the start of a path.
func (e environment) withHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && homeFolder(e.lookup) != "" {
		return filepath.Join(homeFolder(e.lookup), rest)
	}
	return path
}

func (e environment) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(e.folder, path)
}

// expansion expands the references of one upstream and collects what cannot be resolved.
type expansion struct {
	environment
	values     []variable // of the references
	unresolved []unresolved

	ctx        context.Context // bounds reading stored secrets; nil leaves them as they are written
	isDeferred bool            // there are stored secrets that were left
}

type variable struct{ name, value string }

// unresolved is a reference that cannot be resolved.
type unresolved struct {
	what   string   // what is wrong: it names the reference
	detail string   // why, or what to do; it follows the places
	places []string // where the reference is used
}

// text expands the references in a text once. place is the text's path in the file, for
// messages.
func (x *expansion) text(place, text string) string {
	expanded, err := reference.Map(text, func(p reference.Part) string { return x.part(place, p) })
	if err != nil {
		return text
	}
	return expanded
}

// path expands a path, which may start with ~/.
func (x *expansion) path(place, text string) string {
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		return x.withHome("~/" + x.text(place, rest))
	}
	return x.text(place, text)
}

// dict expands the values of env or headers. Those in commands, by place, are what a command
// prints.
func (x *expansion) dict(place string, texts map[string]string, commands map[string][]string) map[string]string {
	expanded := maps.Clone(texts)
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		at := place + "." + key
		if words := commands[at]; words != nil {
			expanded[key] = x.command(at, words)
			continue
		}
		expanded[key] = x.text(at, texts[key])
	}
	return expanded
}

func (x *expansion) part(place string, p reference.Part) string {
	switch {
	case p.IsForeign:
		x.fail(place, p.Text, " cannot be resolved outside the editor it was written for; write ${VAR} and set VAR")
		return ""
	case p.Name == "":
		return p.Text
	case p.Place != "":
		return x.stored(place, p)
	case p.IsSelf:
		path, err := os.Executable()
		if err != nil {
			x.fail(place, p.Text, fmt.Sprintf(": the path of mcpx is unknown (%v); write the path instead", err))
		}
		return path
	}
	value, ok := x.lookup(p.Name)
	switch {
	case value == "" && p.HasFallback: // as in a shell, empty counts as unset
		value = p.Fallback
	case !ok:
		x.fail(place, "environment variable "+p.Name+" is not set", fmt.Sprintf("; set it, or write ${%s:-default}", p.Name))
	}
	x.values = append(x.values, variable{p.Name, value})
	return value
}

// fail records a reference that cannot be resolved. One that is used in several places is
// one problem.
func (x *expansion) fail(place, what, detail string) {
	for i := range x.unresolved {
		if u := &x.unresolved[i]; u.what == what && u.detail == detail {
			u.places = append(u.places, place)
			return
		}
	}
	x.unresolved = append(x.unresolved, unresolved{what, detail, []string{place}})
}

// err returns one line about everything that could not be resolved.
func (x *expansion) err() error {
	if x.unresolved == nil {
		return nil
	}
	texts := make([]string, len(x.unresolved))
	for i, u := range x.unresolved {
		texts[i] = fmt.Sprintf("%s (used in %s)%s", u.what, strings.Join(u.places, ", "), u.detail)
	}
	return errors.New(strings.Join(texts, "; "))
}
