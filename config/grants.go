package config

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"mcpx/internal/jsonfile"
	"mcpx/internal/policy"
)

// tokens is an array of tokens.
func tokens(p *[]Token) kind {
	each := func(t *Token) kind { return section(t.fields()).requiring("name", "token", "allow") }
	return array(p, "array of tokens", each).also(pair{"minItems", 1}).then(func(r *reader, n jsonfile.Node) {
		if n.Kind() == '[' && len(*p) == 0 {
			r.Fail(n, "must not be empty: the front would need no token; add one, or leave tokens out")
		}
		names := map[string]jsonfile.Node{}
		for i, e := range n.Elements() {
			r.unique(e, "name", (*p)[i].Name, names)
		}
	})
}

// requiring adds members that an object must have.
func (k kind) requiring(keys ...string) kind {
	return k.also(pair{"required", keys}).then(func(r *reader, n jsonfile.Node) { r.require(n, keys...) })
}

// unique reports a member whose value an earlier object of the same array has.
func (r *reader) unique(n jsonfile.Node, key, value string, first map[string]jsonfile.Node) {
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

// require reports members that an object must have.
func (r *reader) require(n jsonfile.Node, keys ...string) {
	if n.Kind() != '{' {
		return
	}
	for _, key := range keys {
		if _, ok := n.Member(key); ok {
			continue
		}
		hint := ""
		if key == "allow" {
			hint = `; write ["*"] for everything`
		}
		r.Fail(n.Missing(key), "required%s", hint)
	}
}

// grants is an object of grants by name.
func grants(p *Grants) kind {
	return byName(p, "object of grants", grant, func(name string) error {
		if name == "" || strings.ContainsAny(name, "\"\\") {
			return errors.New("a name must not be empty nor hold quotes")
		}
		return nil
	})
}

// grant is a list of rules, or an object with "allow".
func grant(g *policy.Grant) kind {
	short, long := list(&g.Allow, policy.CheckRule), section(grantFields(g)).requiring("allow")
	return kind{
		schema: object{{"anyOf", []object{short.schema, long.schema}}},
		read: func(r *reader, n jsonfile.Node) {
			switch n.Kind() {
			case '[':
				short.read(r, n)
			case '{':
				long.read(r, n)
			default:
				r.Fail(n, `expected an array of rules, or an object with "allow", got %s`, n.Describe())
			}
		},
		show: func() any {
			if g.ReadOnly {
				return long.show()
			}
			return append([]string{}, g.Allow...)
		},
	}
}

// warnUnmatched warns about rules that match nothing in the config, such as a server's name
// without its schema.
func (r *reader) warnUnmatched(auth jsonfile.Node, profiles []Profile) {
	listed, _ := auth.Member("tokens")
	grants := listed.Value.Elements()
	provider, _ := auth.Member("oidc")
	scopes, _ := provider.Value.Member("scopes")
	claims, _ := provider.Value.Member("claims")
	for _, m := range append(claims.Value.Members(), scopes) {
		for _, grant := range m.Value.Members() {
			grants = append(grants, grant.Value)
		}
	}
	for _, grant := range grants {
		if allow, ok := grant.Member("allow"); ok {
			grant = allow.Value
		}
		for _, rule := range grant.Elements() {
			r.warnRule(rule, profiles)
		}
	}
}

// warnRule warns about a rule that matches no schema, or no server of its schemas.
func (r *reader) warnRule(n jsonfile.Node, profiles []Profile) {
	if n.Kind() != '"' || policy.CheckRule(n.Text()) != nil {
		return // reported elsewhere
	}
	text := n.Text()
	rules := policy.Union(policy.Grant{Allow: []string{text}})
	all := make([]string, len(profiles))
	for i, p := range profiles {
		all[i] = p.Name
	}
	chosen := slices.DeleteFunc(slices.Clone(profiles), func(p Profile) bool { return !rules.HasSchema(p.Name) })
	if len(chosen) == 0 {
		r.Warn(n, "%q grants nothing: its first part matches no schema; schemas: %s", text, strings.Join(all, ", "))
		return
	}
	var servers []string
	for _, p := range chosen {
		isGranted := func(u Upstream) bool { return rules.HasServer(p.Name, u.Name) }
		if !strings.Contains(text, "/") || slices.ContainsFunc(p.all, isGranted) {
			return
		}
		for _, u := range p.all {
			servers = append(servers, u.Name)
		}
	}
	r.Warn(n, "%q grants nothing: its second part matches no server; servers: %s", text, cmp.Or(strings.Join(servers, ", "), "none"))
}
