package config

import (
	"cmp"
	"slices"
	"strings"

	"mcpx/internal/policy"
)

// tokens is an array of tokens.
func tokens(p *[]Token) kind {
	return kind{
		schema: object{{"type", "array"}, {"items", append(describe(new(Token).fields()), pair{"required", []string{"name", "token", "allow"}})}},
		read: func(r *reader, n node) {
			if !r.is(n, '[', "array of tokens") {
				return
			}
			names := map[string]node{}
			for _, e := range n.elements() {
				var t Token
				r.object(e, t.fields())
				r.require(e, "name", "token", "allow")
				r.unique(e, "name", t.Name, names)
				*p = append(*p, t)
			}
		},
		show: func() any {
			var all []object
			for _, t := range *p {
				all = append(all, show(t.fields()))
			}
			if all == nil {
				return nil
			}
			return all
		},
	}
}

// unique reports a member whose value an earlier object of the same array has.
func (r *reader) unique(n node, key, value string, first map[string]node) {
	m, ok := n.member(key)
	if !ok || value == "" {
		return
	}
	if f, ok := first[value]; ok {
		r.fail(m.value, "duplicate %s %q; first on line %d", key, value, r.line(f))
		return
	}
	first[value] = m.value
}

// require reports members that an object must have.
func (r *reader) require(n node, keys ...string) {
	if n.kind() != '{' {
		return
	}
	for _, key := range keys {
		if _, ok := n.member(key); ok {
			continue
		}
		hint := ""
		if key == "allow" {
			hint = `; write ["*"] for everything`
		}
		r.fail(node{n.value, n.pathTo(key)}, "required%s", hint)
	}
}

// grants is an object of grants by name.
func grants(p *[]Named) kind {
	return kind{
		schema: object{{"type", "object"}, {"additionalProperties", grantSchema()}},
		read: func(r *reader, n node) {
			if !r.is(n, '{', "object of grants") {
				return
			}
			for _, m := range n.members() {
				if m.key == "" || strings.ContainsAny(m.key, "\"\\") {
					r.fail(m.name, "a name must not be empty nor hold quotes")
				}
				*p = append(*p, Named{m.key, r.grant(m.value)})
			}
		},
		show: func() any { return showGrants(*p) },
	}
}

// grantSchema is the JSON Schema of a grant.
func grantSchema() object {
	long := append(describe(grantFields(&policy.Grant{})), pair{"required", []string{"allow"}})
	short := object{{"type", "array"}, {"items", object{{"type", "string"}}}}
	return object{{"anyOf", []object{short, long}}}
}

// grant reads a list of rules, or an object with "allow".
func (r *reader) grant(n node) (g policy.Grant) {
	switch n.kind() {
	case '[':
		list(&g.Allow, policy.CheckRule).read(r, n)
	case '{':
		r.object(n, grantFields(&g))
		r.require(n, "allow")
	default:
		r.fail(n, `expected an array of rules, or an object with "allow", got %s`, n.describe())
	}
	return g
}

func showGrants(all []Named) any {
	if len(all) == 0 {
		return nil
	}
	var o object
	for _, named := range all {
		if named.Grant.ReadOnly {
			o = append(o, pair{named.Name, show(grantFields(&named.Grant))})
		} else {
			o = append(o, pair{named.Name, append([]string{}, named.Grant.Allow...)})
		}
	}
	return o
}

// claims is an object of claims by name, each an object of grants by value.
func claims(p *[]Claim) kind {
	return kind{
		schema: object{{"type", "object"}, {"additionalProperties", object{{"type", "object"}, {"additionalProperties", grantSchema()}}}},
		read: func(r *reader, n node) {
			if !r.is(n, '{', "object of claims") {
				return
			}
			for _, m := range n.members() {
				c := Claim{Name: m.key}
				grants(&c.Values).read(r, m.value)
				*p = append(*p, c)
			}
		},
		show: func() any {
			var o object
			for _, c := range *p {
				o = append(o, pair{c.Name, showGrants(c.Values)})
			}
			if o == nil {
				return nil
			}
			return o
		},
	}
}

// warnUnmatched warns about rules that match nothing in the config, such as a server's name
// without its schema.
func (r *reader) warnUnmatched(auth node, profiles []Profile) {
	listed, _ := auth.member("tokens")
	grants := listed.value.elements()
	provider, _ := auth.member("oidc")
	scopes, _ := provider.value.member("scopes")
	claims, _ := provider.value.member("claims")
	for _, m := range append(claims.value.members(), scopes) {
		for _, grant := range m.value.members() {
			grants = append(grants, grant.value)
		}
	}
	for _, grant := range grants {
		if allow, ok := grant.member("allow"); ok {
			grant = allow.value
		}
		for _, rule := range grant.elements() {
			r.warnRule(rule, profiles)
		}
	}
}

// warnRule warns about a rule that matches no schema, or no server of its schemas.
func (r *reader) warnRule(n node, profiles []Profile) {
	if n.kind() != '"' || policy.CheckRule(n.literal().String()) != nil {
		return // reported elsewhere
	}
	text := n.literal().String()
	rules := policy.Union(policy.Grant{Allow: []string{text}})
	all := make([]string, len(profiles))
	for i, p := range profiles {
		all[i] = p.Name
	}
	chosen := slices.DeleteFunc(slices.Clone(profiles), func(p Profile) bool { return !rules.HasSchema(p.Name) })
	if len(chosen) == 0 {
		r.warn(n, "%q grants nothing: its first part matches no schema; schemas: %s", text, strings.Join(all, ", "))
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
	r.warn(n, "%q grants nothing: its second part matches no server; servers: %s", text, cmp.Or(strings.Join(servers, ", "), "none"))
}
