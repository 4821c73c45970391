package config

import (
	"cmp"
	"slices"
	"strings"

	"mcpx/internal/jsonfile"
	"mcpx/internal/policy"
)

// tokens is an array of tokens.
func tokens(p *[]Token) kind {
	return kind{
		schema: object{{"type", "array"}, {"items", append(describe(new(Token).fields()), pair{"required", []string{"name", "token", "allow"}})}, {"minItems", 1}},
		read: func(r *reader, n jsonfile.Node) {
			if !r.is(n, '[', "array of tokens") {
				return
			}
			if len(n.Elements()) == 0 {
				r.Fail(n, "must not be empty: the front would need no token; add one, or leave tokens out")
			}
			names := map[string]jsonfile.Node{}
			for _, e := range n.Elements() {
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
func grants(p *[]Named) kind {
	return kind{
		schema: object{{"type", "object"}, {"additionalProperties", grantSchema()}},
		read: func(r *reader, n jsonfile.Node) {
			if !r.is(n, '{', "object of grants") {
				return
			}
			for _, m := range n.Members() {
				if m.Key == "" || strings.ContainsAny(m.Key, "\"\\") {
					r.Fail(m.Name, "a name must not be empty nor hold quotes")
				}
				*p = append(*p, Named{m.Key, r.grant(m.Value)})
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
func (r *reader) grant(n jsonfile.Node) (g policy.Grant) {
	switch n.Kind() {
	case '[':
		list(&g.Allow, policy.CheckRule).read(r, n)
	case '{':
		r.object(n, grantFields(&g))
		r.require(n, "allow")
	default:
		r.Fail(n, `expected an array of rules, or an object with "allow", got %s`, n.Describe())
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
		read: func(r *reader, n jsonfile.Node) {
			if !r.is(n, '{', "object of claims") {
				return
			}
			for _, m := range n.Members() {
				c := Claim{Name: m.Key}
				grants(&c.Values).read(r, m.Value)
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
