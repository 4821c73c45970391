package config

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"mcpx/internal/jsonc"
	"mcpx/internal/nearest"
)

// reader reads the file and collects its problems.
type reader struct {
	*jsonc.File
	environment environment
}

// object reads the members of an object into its fields.
func (r *reader) object(n jsonc.Node, fields []Field) {
	if !r.is(n, '{', "object") {
		return
	}
	for _, m := range n.Members() {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == m.Key })
		if i >= 0 {
			fields[i].Kind.read(r, m.Value)
			continue
		}
		if !r.MayWarn() {
			continue // the warning is dropped
		}
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.Name
		}
		if near := nearest.Word(m.Key, names); near != "" {
			r.Warn(m.Name, "unknown key; did you mean %q?", near)
		} else {
			r.Warn(m.Name, "unknown key; ignored")
		}
	}
}

// is reports whether a value has the expected kind, and fails otherwise.
func (r *reader) is(n jsonc.Node, kind hujson.Kind, want string) bool {
	if n.Kind() == kind {
		return true
	}
	r.Fail(n, "expected %s, got %s", want, n.Describe())
	return false
}

// Text returns a string that passes the checks.
func (r *reader) text(n jsonc.Node, checks ...check) (string, bool) {
	if kind := n.Kind(); kind == '0' || kind == 't' || kind == 'f' {
		r.Fail(n, "expected string, got %s; write %q", n.Describe(), n.Literal())
		return "", false
	}
	if !r.is(n, '"', "string") {
		return "", false
	}
	s := n.Text()
	return s, r.check(n, s, checks...)
}

// check reports whether a text passes the checks, and fails otherwise.
func (r *reader) check(n jsonc.Node, s string, checks ...check) bool {
	for _, check := range checks {
		if err := check(s); err != nil {
			r.Fail(n, "%v", err)
			return false
		}
	}
	return true
}

// config reads the whole file.
func (r *reader) config(root jsonc.Node, c *Config) {
	top := r.environment.defaultProfile("default")
	r.object(root, c.fields(&top))
	used := r.oneOf(root, slices.Concat(ProfileKeys, ServerKeys))
	c.Stdio.Encoding = "utf8" // or utf-8, which is the same
	hasProfiles := slices.Contains(ProfileKeys, used)
	if !hasProfiles {
		r.prefix(root, &top)
		c.Profiles = []Profile{top}
	}
	r.store(root, c)
	for _, check := range r.environment.Checks {
		check(c, r.File, root)
	}
	for _, key := range []string{"expose", "prefix", "flat_wait"} {
		if m, ok := root.Member(key); ok && hasProfiles {
			r.Fail(m.Name, "has no effect next to %s; move it into a profile", used)
		}
	}
}

// store checks that a store has a session key.
func (r *reader) store(root jsonc.Node, c *Config) {
	server, _ := root.Member("server")
	if address, ok := server.Value.Member("store"); ok && len(c.Server.SessionKeys) == 0 {
		r.Fail(address.Name, "needs server.session_key, which seals OAuth tokens in the store and lets every replica continue client sessions; make one with: openssl rand -base64 32")
	}
}

// oneOf returns which of the keys the object has. It must have exactly one.
func (r *reader) oneOf(n jsonc.Node, keys []string) string {
	var used []jsonc.Member
	for _, m := range n.Members() {
		if slices.Contains(keys, m.Key) {
			used = append(used, m)
		}
	}
	if len(used) == 0 {
		r.Fail(n, `no servers; write them as "mcpServers": {"NAME": {"command": "…"}}`)
		return ""
	}
	for _, m := range used[1:] {
		if m.Key != used[0].Key { // duplicates are reported elsewhere
			r.Fail(m.Name, "cannot be combined with %q on line %d; keep one of them", used[0].Key, r.Line(used[0].Name))
		}
	}
	return used[0].Key
}

// profiles returns the kind of the object with all profiles.
func profiles(p *[]Profile) Kind {
	return Kind{
		schema: object{
			{"type", "object"},
			{"minProperties", 1},
			{"propertyNames", object{anyName}},
			{"additionalProperties", object{{"$ref", "#/$defs/profile"}}},
		},
		read: func(r *reader, n jsonc.Node) {
			if !r.is(n, '{', "object of profiles") {
				return
			}
			if len(n.Members()) == 0 {
				r.Fail(n, `no profiles; write {"default": {"mcpServers": {}}}`)
			}
			for _, m := range n.Members() {
				*p = append(*p, r.profile(m))
			}
		},
		show: func() any { return showProfiles(*p) },
	}
}

func (r *reader) profile(m jsonc.Member) Profile {
	p := r.environment.defaultProfile(m.Key)
	r.check(m.Name, m.Key, checkAnyName)
	r.object(m.Value, p.fields())
	if m.Value.Kind() == '{' {
		r.oneOf(m.Value, ServerKeys)
		r.prefix(m.Value, &p)
	}
	return p
}

// prefix checks that a profile without a prefix has only one upstream.
func (r *reader) prefix(n jsonc.Node, p *Profile) {
	enabled := 0
	for _, u := range p.all {
		if !u.disabled {
			enabled++
		}
	}
	if m, ok := n.Member("prefix"); ok && !p.Prefix && enabled > 1 {
		r.Fail(m.Value, "false needs a single server, and %d are enabled; give each its own profile, or leave prefix out", enabled)
	}
}

// serverMap returns the kind of an object of servers by name.
func serverMap(p *[]Upstream) Kind {
	return Kind{
		schema: object{
			{"type", "object"},
			{"propertyNames", object{serverName}},
			{"additionalProperties", object{{"$ref", "#/$defs/server"}}},
		},
		read: func(r *reader, n jsonc.Node) {
			if !r.is(n, '{', "object of servers") {
				return
			}
			for _, m := range n.Members() {
				u := r.environment.defaultUpstream()
				u.Name = m.Key
				r.check(m.Name, u.Name, CheckName)
				r.upstream(m.Value, &u, u.fields())
				*p = append(*p, u)
			}
		},
		show: func() any { return showUpstreams(*p) },
	}
}

// serverList returns the kind of an array of servers.
func serverList(p *[]Upstream) Kind {
	return unshown(Kind{
		schema: object{{"type", "array"}, {"items", append(
			describe([]Field{new(Upstream).nameField()}),
			pair{"$ref", "#/$defs/server"},
			pair{"required", []string{"name"}},
		)}},
		read: func(r *reader, n jsonc.Node) {
			if !r.is(n, '[', "array of servers") {
				return
			}
			first := map[string]jsonc.Node{}
			for _, e := range n.Elements() {
				u := r.environment.defaultUpstream()
				r.upstream(e, &u, append(u.fields(), u.nameField()))
				if _, ok := e.Member("name"); !ok && e.Kind() == '{' {
					r.Fail(e.Missing("name"), "required")
				}
				if m, ok := e.Member("name"); ok && m.Value.Kind() == '"' {
					r.check(m.Value, u.Name, CheckName)
				}
				r.unique(e, "name", u.Name, first)
				*p = append(*p, u)
			}
		},
	})
}

// unique reports a member whose value an earlier object of the same array has.
func (r *reader) unique(n jsonc.Node, key, value string, first map[string]jsonc.Node) {
	m, ok := n.Member(key)
	if !ok || value == "" {
		return
	}
	if f, ok := first[value]; ok {
		r.Fail(m.Value, "duplicate %s %q; first on line %d", key, value, r.Line(f))
		return
	}
	first[value] = m.Value
}

// upstream reads one server and checks that its keys fit together.
func (r *reader) upstream(n jsonc.Node, u *Upstream, fields []Field) {
	r.object(n, fields)
	if n.Kind() != '{' {
		return
	}
	u.Description = strings.Join(strings.Fields(u.Description), " ")
	r.transport(n, u)
	r.forwarding(n, u)
	if !u.disabled {
		r.warnFiles(n)
	}
	disabled, ok1 := n.Member("disabled")
	enabled, ok2 := n.Member("enabled")
	if ok1 && ok2 && disabled.Value.Literal().Bool() == enabled.Value.Literal().Bool() {
		r.Fail(enabled.Name, "contradicts disabled on line %d; keep one of them", r.Line(disabled.Name))
	}
	most, ok := n.Member("max_timeout")
	if u.MaxTimeout >= u.Timeout {
		return
	}
	if ok {
		r.Fail(most.Value, "must not be shorter than timeout (%s)", FormatDuration(u.Timeout))
	}
	u.MaxTimeout = u.Timeout
}

// transport checks that an upstream has either a command or a url.
func (r *reader) transport(n jsonc.Node, u *Upstream) {
	command, local := n.Member("command")
	address, remote := n.Member("url")
	if slices.Contains(synonyms, u.Transport) {
		u.Transport = TransportHTTP
	}
	written, _ := n.Member("type")
	switch {
	case local && remote:
		r.Fail(address.Name, "cannot be combined with command on line %d; keep one of them", r.Line(command.Name))
	case !local && !remote:
		r.Fail(n, "needs command or url")
	case local && u.Transport != "" && u.Transport != TransportStdio:
		r.Fail(written.Value, "%q needs url, but the server has command", u.Transport)
	case remote && u.Transport == TransportStdio:
		r.Fail(written.Value, `"stdio" needs command, but the server has url`)
	case local:
		u.Transport = TransportStdio
		if program, more := CommandWords(u.Command); more {
			r.Warn(command.Value, `is the program alone; move the words after %q to "args"`, program)
		}
		r.warnUnused(n, "command", "headers", "auth")
	case remote:
		if u.Transport == "" {
			u.Transport = TransportRemote
		}
		r.warnUnused(n, "url", "args", "env", "cwd")
		if m, ok := n.Member("sandbox"); ok && u.Sandbox != nil {
			r.Fail(m.Name, "needs command; a remote server cannot be sandboxed")
		}
		r.auth(n, u)
	}
}

// auth checks that the keys of auth fit together.
func (r *reader) auth(n jsonc.Node, u *Upstream) {
	m, ok := n.Member("auth")
	if !ok {
		return
	}
	for name := range u.Headers {
		if strings.EqualFold(name, "Authorization") && u.Auth.Flow != "none" {
			r.Warn(m.Name, "has no effect next to the header Authorization")
		}
	}
	isMachine := u.Auth.Flow == "client_credentials"
	switch a := u.Auth; {
	case isMachine && (a.ClientID == "" || a.ClientSecret == "" && a.PrivateKey == ""):
		r.Fail(m.Value, `the flow "client_credentials" needs client_id, and client_secret or private_key`)
	case a.ClientID == "" && (a.ClientSecret != "" || a.PrivateKey != ""):
		r.Fail(m.Value, "client_secret and private_key need client_id")
	case a.ClientSecret != "" && a.PrivateKey != "":
		r.Fail(m.Value, "client_secret and private_key exclude each other; keep one of them")
	}
}

// warnUnused warns about keys that have no effect next to another one.
func (r *reader) warnUnused(n jsonc.Node, used string, keys ...string) {
	for _, key := range keys {
		if m, ok := n.Member(key); ok {
			r.Warn(m.Name, "has no effect next to %s", used)
		}
	}
}
