package config

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/jsonc"
	"mcpx/internal/policy"
	"mcpx/internal/redact"
	"mcpx/internal/reference"
	"mcpx/internal/seal"
)

// Access says who may use the HTTP front, and what they may use there.
type Access struct {
	Tokens []Token
	OIDC   OIDC
}

// Token is a named bearer token.
type Token struct {
	Name    string
	Token   string
	Grant   policy.Grant
	Expires time.Time // it is not valid at that time and later; zero: always valid
}

// OIDC is an OpenID Connect issuer whose access tokens mcpx accepts.
type OIDC struct {
	Issuer   string          // empty: none
	Audience []string        // accepted values of "aud"; none: the public URLs of mcpx
	Scopes   Grants          // what each scope grants
	Claims   []Named[Grants] // what the values of each other claim grant
}

// Grants has what scopes or the values of a claim grant, in file order.
type Grants = []Named[policy.Grant]

func (a *Access) fields() []Field {
	return []Field{
		{"tokens", tokens(&a.Tokens), "Bearer tokens with a name each, and what their holders may use."},
		{"oidc", Object(a.OIDC.fields()), "An OpenID Connect issuer whose access tokens are accepted."},
	}
}

func (t *Token) fields() []Field {
	return append([]Field{
		{"name", Text(&t.Name, checkAnyName).also(anyName), "Unique name of the token, for the log and the audit."},
		{"token", HiddenText(&t.Token), "The token. Write a ${VAR} instead of the token itself."},
		{"expires", date(&t.Expires), "Last day on which the token is valid, in UTC: 2027-01-01."},
	}, grantFields(&t.Grant)...)
}

func grantFields(g *policy.Grant) []Field {
	return []Field{
		{"allow", List(&g.Allow, policy.CheckRule), `What the caller may use: "schema", "schema/server" or "schema/server/tool", with globs; "*" is everything.`},
		{"read_only", Optional(Boolean(&g.ReadOnly)), "true leaves only tools that say readOnlyHint: true."},
	}
}

func (o *OIDC) fields() []Field {
	audience := func(p *string) Kind { return Text(p, NonEmpty) }
	return []Field{
		{"issuer", Text(&o.Issuer, issuerURL).also(webAddress), "Its URL, which has /.well-known/openid-configuration below it."},
		{"audience", OneOrMore(&o.Audience, audience), `Accepted values of "aud". The default is the public URL of /mcp, and of /mcp/SCHEMA for that profile alone.`},
		{"scopes", grants(&o.Scopes), "What each scope grants: a list of rules, or an object with allow and read_only."},
		{"claims", ByName(&o.Claims, "object of claims", grants), `What other claims grant, by their name and value: {"groups": {"dev": ["work"]}}.`},
	}
}

// HiddenText is a text with references that is never empty and never shown. It belongs to
// no upstream, so a missing variable or secret is a problem of the file. The checks are for
// the expanded text.
func HiddenText(p *string, checks ...check) Kind {
	checks = append([]check{notMasked}, checks...)
	return Kind{
		schema: object{{"type", "string"}, notEmpty},
		read: func(r *reader, n jsonc.Node) {
			s, ok := r.text(n, NonEmpty, reference.Check)
			if !ok {
				return
			}
			r.warnFile(n)
			x := expansion{environment: r.environment, ctx: context.Background()}
			value := x.text(n.Path, s)
			switch err := x.err(); {
			case err != nil:
				r.Fail(n, "%v", err)
			case value == "" && !r.environment.isDry:
				r.Fail(n, "%v", errExpandedEmpty)
			case value != "" && r.check(n, value, checks...):
				*p = value
			}
		},
		show: func() any {
			if *p == "" {
				return nil
			}
			return redact.Hidden
		},
	}
}

// notMasked rejects what Show writes in place of a secret.
func notMasked(s string) error {
	if s == redact.Hidden {
		return errors.New(`"***" is what mcpx shows in place of a secret; write the secret itself, or a reference to it such as ${VAR}`)
	}
	return nil
}

// sessionKey is a key that seals client sessions. It is never shown.
func sessionKey(p *seal.Key) Kind {
	k := HiddenText(new(string), func(text string) (err error) {
		*p, err = seal.ParseKey(text)
		return err
	})
	k.show = func() any { return redact.Hidden }
	return k
}

// date is a day that a value is valid on for the last time. It stores the end of the day.
func date(p *time.Time) Kind {
	return Kind{
		schema: object{{"type", "string"}, {"pattern", `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`}},
		read: func(r *reader, n jsonc.Node) {
			s, ok := r.text(n)
			if !ok {
				return
			}
			day, err := time.Parse(time.DateOnly, s)
			if err != nil {
				r.Fail(n, `expected a date such as "2027-01-31", got %q`, s)
				return
			}
			*p = day.AddDate(0, 0, 1)
		},
		show: func() any {
			if p.IsZero() {
				return nil
			}
			return p.AddDate(0, 0, -1).Format(time.DateOnly)
		},
	}
}

// issuerURL accepts https, and http on this machine.
func issuerURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return errors.New(`expected the URL of an issuer, such as "https://id.example.com"`)
	}
	address, err := netip.ParseAddr(u.Hostname())
	isLocal := u.Hostname() == "localhost" || err == nil && address.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !isLocal) {
		return errors.New("an issuer needs https, except on localhost")
	}
	return nil
}

// publicURL accepts an origin, with a path or without.
func publicURL(s string) error {
	u, err := url.Parse(s)
	if webURL(s) != nil || err != nil || u.RawQuery != "" || u.Fragment != "" || u.User != nil || strings.HasSuffix(s, "/") {
		return errors.New(`expected the address of mcpx without /mcp and without a slash at its end, such as "https://mcpx.example.com"`)
	}
	return nil
}

// access checks that the parts of "server" fit together, and fit the profiles.
func (r *reader) access(root jsonc.Node, c *Config) {
	server, _ := root.Member("server")
	if address, ok := server.Value.Member("store"); ok && len(c.Server.SessionKeys) == 0 {
		r.Fail(address.Name, "needs server.session_key, which seals OAuth tokens in the store and lets every replica continue client sessions; make one with: openssl rand -base64 32")
	}
	auth, _ := server.Value.Member("auth")
	r.warnUnmatched(auth.Value, c.Profiles)
	listed, _ := auth.Value.Member("tokens")
	elements := listed.Value.Elements()
	fewest := min(len(elements), len(c.Server.Auth.Tokens)) // they differ if there are two lists, which is reported elsewhere
	owners := map[string]string{c.Server.Token: "server.token, which may do everything"}
	for i, t := range c.Server.Auth.Tokens[:fewest] {
		if owner := owners[t.Token]; owner != "" && t.Token != "" {
			r.Fail(elements[i], "has the same token as %s; give it its own", owner)
		}
		owners[t.Token] = cmp.Or(owners[t.Token], strconv.Quote(t.Name))
	}
	provider, ok := auth.Value.Member("oidc")
	if !ok || provider.Value.Kind() != '{' {
		return
	}
	if o := c.Server.Auth.OIDC; o.Issuer != "" {
		if c.Server.PublicURL == "" && len(o.Audience) == 0 {
			r.Fail(provider.Name, `needs audience, or "server": {"public_url": "https://mcpx.example.com"}, the address that clients use`)
		}
		if len(o.Scopes) == 0 && len(o.Claims) == 0 {
			r.Fail(provider.Name, `needs scopes or claims, or its tokens grant nothing; write "scopes": {"mcp": ["*"]}`)
		}
	}
	r.require(provider.Value, "issuer")
}

// tokens is an array of tokens.
func tokens(p *[]Token) Kind {
	each := func(t *Token) Kind { return Object(t.fields()).requiring("name", "token", "allow") }
	return Array(p, "array of tokens", each).also(pair{"minItems", 1}).then(func(r *reader, n jsonc.Node) {
		if n.Kind() == '[' && len(*p) == 0 {
			r.Fail(n, "must not be empty: the front would need no token; add one, or leave tokens out")
		}
		names := map[string]jsonc.Node{}
		for i, e := range n.Elements() {
			r.unique(e, "name", (*p)[i].Name, names)
		}
	})
}

// requiring adds members that an object must have.
func (k Kind) requiring(keys ...string) Kind {
	return k.also(pair{"required", keys}).then(func(r *reader, n jsonc.Node) { r.require(n, keys...) })
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

// require reports members that an object must have.
func (r *reader) require(n jsonc.Node, keys ...string) {
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
func grants(p *Grants) Kind {
	return ByName(p, "object of grants", grant, func(name string) error {
		if name == "" || strings.ContainsAny(name, "\"\\") {
			return errors.New("a name must not be empty nor hold quotes")
		}
		return nil
	})
}

// grant is a list of rules, or an object with "allow".
func grant(g *policy.Grant) Kind {
	short, long := List(&g.Allow, policy.CheckRule), Object(grantFields(g)).requiring("allow")
	return Kind{
		schema: object{{"anyOf", []object{short.schema, long.schema}}},
		read: func(r *reader, n jsonc.Node) {
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
// without its profile.
func (r *reader) warnUnmatched(auth jsonc.Node, profiles []Profile) {
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

// warnRule warns about a rule that matches no profile, or no server of its profiles.
func (r *reader) warnRule(n jsonc.Node, profiles []Profile) {
	if n.Kind() != '"' || policy.CheckRule(n.Text()) != nil {
		return // reported elsewhere
	}
	text := n.Text()
	rules := policy.Union(policy.Grant{Allow: []string{text}})
	all := make([]string, len(profiles))
	for i, p := range profiles {
		all[i] = p.Name
	}
	chosen := slices.DeleteFunc(slices.Clone(profiles), func(p Profile) bool { return !rules.HasProfile(p.Name) })
	if len(chosen) == 0 {
		r.Warn(n, "%q grants nothing: its first part matches no profile; profiles: %s", text, strings.Join(all, ", "))
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
