package config

import (
	"slices"
	"strings"
)

// config reads the whole file.
func (r *reader) config(root node, c *Config) {
	top := defaultProfile("default")
	r.object(root, c.fields(&top))
	used := r.oneOf(root, append([]string{"schemas"}, serverKeys...))
	c.Stdio.Encoding = "utf8" // or utf-8, which is the same
	if used != "schemas" {
		r.prefix(root, &top)
		c.Profiles = []Profile{top}
	}
	r.access(root, c)
	for _, key := range []string{"expose", "prefix", "flat_wait"} {
		if m, ok := root.member(key); ok && used == "schemas" {
			r.fail(m.name, "has no effect next to schemas; move it into a schema")
		}
	}
}

// oneOf returns which of the keys the object has. It must have exactly one.
func (r *reader) oneOf(n node, keys []string) string {
	var used []member
	for _, m := range n.members() {
		if slices.Contains(keys, m.key) {
			used = append(used, m)
		}
	}
	if len(used) == 0 {
		r.fail(n, `no servers; write them as "mcpServers": {"NAME": {"command": "…"}}`)
		return ""
	}
	for _, m := range used[1:] {
		if m.key != used[0].key { // duplicates are reported elsewhere
			r.fail(m.name, "cannot be combined with %q on line %d; keep one of them", used[0].key, r.line(used[0].name))
		}
	}
	return used[0].key
}

// profiles returns the kind of the object with all schemas.
func profiles(p *[]Profile) kind {
	return kind{
		schema: object{
			{"type", "object"},
			{"minProperties", 1},
			{"propertyNames", object{anyName}},
			{"additionalProperties", object{{"$ref", "#/$defs/schema"}}},
		},
		read: func(r *reader, n node) {
			if !r.is(n, '{', "object of schemas") {
				return
			}
			if len(n.members()) == 0 {
				r.fail(n, `no schemas; write {"default": {"mcpServers": {}}}`)
			}
			for _, m := range n.members() {
				*p = append(*p, r.profile(m))
			}
		},
		show: func() any { return showProfiles(*p) },
	}
}

func (r *reader) profile(m member) Profile {
	p := defaultProfile(m.key)
	if err := checkAnyName(m.key); err != nil {
		r.fail(m.name, "%v", err)
	}
	r.object(m.value, p.fields())
	if m.value.kind() == '{' {
		r.oneOf(m.value, serverKeys)
		r.prefix(m.value, &p)
	}
	return p
}

// prefix checks that a profile without a prefix has only one upstream.
func (r *reader) prefix(n node, p *Profile) {
	enabled := 0
	for _, u := range p.all {
		if !u.disabled {
			enabled++
		}
	}
	if m, ok := n.member("prefix"); ok && !p.Prefix && enabled > 1 {
		r.fail(m.value, "false needs a single server, and %d are enabled; give each its own schema, or leave prefix out", enabled)
	}
}

// serverMap returns the kind of an object of servers by name.
func serverMap(p *[]Upstream) kind {
	return kind{
		schema: object{
			{"type", "object"},
			{"propertyNames", object{serverName}},
			{"additionalProperties", object{{"$ref", "#/$defs/server"}}},
		},
		read: func(r *reader, n node) {
			if !r.is(n, '{', "object of servers") {
				return
			}
			var u Upstream
			fields := u.fields() // reused for all servers
			for _, m := range n.members() {
				u = defaultUpstream()
				u.Name = m.key
				r.name(m.name, u.Name)
				r.upstream(m.value, &u, fields)
				*p = append(*p, u)
			}
		},
		show: func() any { return showUpstreams(*p) },
	}
}

// serverList returns the kind of an array of servers.
func serverList(p *[]Upstream) kind {
	return unshown(kind{
		schema: object{{"type", "array"}, {"items", append(
			describe([]field{new(Upstream).nameField()}),
			pair{"$ref", "#/$defs/server"},
			pair{"required", []string{"name"}},
		)}},
		read: func(r *reader, n node) {
			if !r.is(n, '[', "array of servers") {
				return
			}
			var u Upstream
			fields := append(u.fields(), u.nameField())
			first := map[string]node{}
			for _, e := range n.elements() {
				u = defaultUpstream()
				r.upstream(e, &u, fields)
				r.listedName(e, u.Name, first)
				*p = append(*p, u)
			}
		},
	})
}

// listedName checks that an element has a valid and unique name.
func (r *reader) listedName(n node, name string, first map[string]node) {
	m, ok := n.member("name")
	if !ok && n.kind() == '{' {
		r.fail(node{n.value, n.pathTo("name")}, "required")
	}
	if !ok || m.value.kind() != '"' {
		return
	}
	r.name(m.value, name)
	if f, ok := first[name]; ok {
		r.fail(m.value, "duplicate name %q; first on line %d", name, r.line(f))
		return
	}
	first[name] = m.value
}

// name checks the name of an upstream.
func (r *reader) name(n node, name string) {
	if err := CheckName(name); err != nil {
		r.fail(n, "%v", err)
	}
}

// upstream reads one server and checks that its keys fit together.
func (r *reader) upstream(n node, u *Upstream, fields []field) {
	r.object(n, fields)
	if n.kind() != '{' {
		return
	}
	u.Description = strings.Join(strings.Fields(u.Description), " ")
	r.transport(n, u)
	r.forwarding(n, u)
	if !u.disabled {
		r.warnFiles(n)
	}
	disabled, ok1 := n.member("disabled")
	enabled, ok2 := n.member("enabled")
	if ok1 && ok2 && disabled.value.literal().Bool() == enabled.value.literal().Bool() {
		r.fail(enabled.name, "contradicts disabled on line %d; keep one of them", r.line(disabled.name))
	}
	most, ok := n.member("max_timeout")
	if u.MaxTimeout >= u.Timeout {
		return
	}
	if ok {
		r.fail(most.value, "must not be shorter than timeout (%s)", FormatDuration(u.Timeout))
	}
	u.MaxTimeout = u.Timeout
}

// transport checks that an upstream has either a command or a url.
func (r *reader) transport(n node, u *Upstream) {
	command, local := n.member("command")
	address, remote := n.member("url")
	if slices.Contains(synonyms, u.Transport) {
		u.Transport = TransportHTTP
	}
	written, _ := n.member("type")
	switch {
	case local && remote:
		r.fail(address.name, "cannot be combined with command on line %d; keep one of them", r.line(command.name))
	case !local && !remote:
		r.fail(n, "needs command or url")
	case local && u.Transport != "" && u.Transport != TransportStdio:
		r.fail(written.value, "%q needs url, but the server has command", u.Transport)
	case remote && u.Transport == TransportStdio:
		r.fail(written.value, `"stdio" needs command, but the server has url`)
	case local:
		u.Transport = TransportStdio
		if program, more := CommandWords(u.Command); more {
			r.warn(command.value, `is the program alone; move the words after %q to "args"`, program)
		}
		r.warnUnused(n, "command", "headers", "auth")
	case remote:
		if u.Transport == "" {
			u.Transport = TransportRemote
		}
		r.warnUnused(n, "url", "args", "env", "cwd")
		if m, ok := n.member("sandbox"); ok && u.Sandbox != nil {
			r.fail(m.name, "needs command; a remote server cannot be sandboxed")
		}
		r.auth(n, u)
	}
}

// auth checks that the keys of auth fit together.
func (r *reader) auth(n node, u *Upstream) {
	m, ok := n.member("auth")
	if !ok {
		return
	}
	for name := range u.Headers {
		if strings.EqualFold(name, "Authorization") && u.Auth.Flow != "none" {
			r.warn(m.name, "has no effect next to the header Authorization")
		}
	}
	isMachine := u.Auth.Flow == "client_credentials"
	switch a := u.Auth; {
	case isMachine && (a.ClientID == "" || a.ClientSecret == "" && a.PrivateKey == ""):
		r.fail(m.value, `the flow "client_credentials" needs client_id, and client_secret or private_key`)
	case a.ClientID == "" && (a.ClientSecret != "" || a.PrivateKey != ""):
		r.fail(m.value, "client_secret and private_key need client_id")
	case a.ClientSecret != "" && a.PrivateKey != "":
		r.fail(m.value, "client_secret and private_key exclude each other; keep one of them")
	}
}

// warnUnused warns about keys that have no effect next to another one.
func (r *reader) warnUnused(n node, used string, keys ...string) {
	for _, key := range keys {
		if m, ok := n.member(key); ok {
			r.warn(m.name, "has no effect next to %s", used)
		}
	}
}
