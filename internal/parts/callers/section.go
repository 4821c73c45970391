package callers

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"mcpx/config"
	"mcpx/internal/jsonc"
)

// Section has the keys of server.auth.
var Section = config.NewSection(config.InServer, Settings{}, func(s *Settings) []config.Field {
	return []config.Field{{Name: "auth", Kind: config.Object(s.fields()), Doc: "Who may use the front, and what they may use there."}}
})

// Settings say who may use the HTTP front, and what they may use there.
type Settings struct {
	Tokens []Token
	OIDC   OIDC
}

// Token is a named bearer token.
type Token struct {
	Name    string
	Token   string
	Grant   Grant
	LastDay string // on which it is valid, in UTC, as 2027-01-31; empty: it is always valid
}

// expires returns when the token is no longer valid; zero: never.
func (t Token) expires() time.Time {
	day, err := time.Parse(time.DateOnly, t.LastDay)
	if err != nil {
		return time.Time{} // it is empty; others are not read
	}
	return day.AddDate(0, 0, 1)
}

// OIDC is an OpenID Connect issuer whose access tokens mcpx accepts.
type OIDC struct {
	Issuer   string                 // empty: none
	Audience []string               // accepted values of "aud"; none: the public URLs of mcpx
	Scopes   Grants                 // what each scope grants
	Claims   []config.Named[Grants] // what the values of each other claim grant
}

// Grants has what scopes or the values of a claim grant, in file order.
type Grants = []config.Named[Grant]

func (s *Settings) fields() []config.Field {
	return []config.Field{
		{Name: "tokens", Kind: tokens(&s.Tokens), Doc: "Bearer tokens with a name each, and what their holders may use."},
		{Name: "oidc", Kind: config.Object(s.OIDC.fields()), Doc: "An OpenID Connect issuer whose access tokens are accepted."},
	}
}

func (t *Token) fields() []config.Field {
	return append([]config.Field{
		{Name: "name", Kind: config.Name(&t.Name), Doc: "Unique name of the token, for the log and the audit."},
		{Name: "token", Kind: config.HiddenText(&t.Token), Doc: "The token. Write a ${VAR} instead of the token itself."},
		{Name: "expires", Kind: config.Text(&t.LastDay, checkDay).Rule("pattern", `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`), Doc: "Last day on which the token is valid, in UTC: 2027-01-01."},
	}, grantFields(&t.Grant)...)
}

func grantFields(g *Grant) []config.Field {
	return []config.Field{
		{Name: "allow", Kind: config.List(&g.Allow, checkRule), Doc: `What the caller may use: "schema", "schema/server" or "schema/server/tool", with globs; "*" is everything.`},
		{Name: "read_only", Kind: config.Optional(config.Boolean(&g.ReadOnly)), Doc: "true leaves only tools that say readOnlyHint: true."},
	}
}

func (o *OIDC) fields() []config.Field {
	audience := func(p *string) config.Kind { return config.Text(p, config.NonEmpty) }
	return []config.Field{
		{Name: "issuer", Kind: config.URL(&o.Issuer, checkIssuer), Doc: "Its URL, which has /.well-known/openid-configuration below it."},
		{Name: "audience", Kind: config.OneOrMore(&o.Audience, audience), Doc: `Accepted values of "aud". The default is the public URL of /mcp, and of /mcp/SCHEMA for that profile alone.`},
		{Name: "scopes", Kind: grants(&o.Scopes), Doc: "What each scope grants: a list of rules, or an object with allow and read_only."},
		{Name: "claims", Kind: config.ByName(&o.Claims, "object of claims", grants), Doc: `What other claims grant, by their name and value: {"groups": {"dev": ["work"]}}.`},
	}
}

// checkDay accepts a date.
func checkDay(s string) error {
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return fmt.Errorf(`expected a date such as "2027-01-31", got %q`, s)
	}
	return nil
}

// checkIssuer accepts https, and http on this machine.
func checkIssuer(s string) error {
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

// tokens is an array of tokens.
func tokens(p *[]Token) config.Kind {
	each := func(t *Token) config.Kind { return requiring(config.Object(t.fields()), "name", "token", "allow") }
	return config.Array(p, "array of tokens", each).Rule("minItems", 1).Then(func(f *jsonc.File, n jsonc.Node) {
		if n.Kind() == '[' && len(*p) == 0 {
			f.Fail(n, "must not be empty: the front would need no token; add one, or leave tokens out")
		}
		first := map[string]jsonc.Node{}
		for i, e := range n.Elements() {
			m, ok := e.Member("name")
			name := (*p)[i].Name
			if !ok || name == "" {
				continue
			}
			if other, ok := first[name]; ok {
				f.Fail(m.Value, "duplicate name %q; first on line %d", name, f.Line(other))
				continue
			}
			first[name] = m.Value
		}
	})
}

// grants is an object of grants by name.
func grants(p *Grants) config.Kind {
	return config.ByName(p, "object of grants", grant, func(name string) error {
		if name == "" || strings.ContainsAny(name, "\"\\") {
			return errors.New("a name must not be empty nor hold quotes")
		}
		return nil
	})
}

// grant is a list of rules, or an object with "allow".
func grant(g *Grant) config.Kind {
	list, long := config.List(&g.Allow, checkRule), requiring(config.Object(grantFields(g)), "allow")
	return config.ListOrObject(list, long, `an array of rules, or an object with "allow"`, func() bool { return g.ReadOnly })
}

// requiring adds members that an object must have.
func requiring(k config.Kind, keys ...string) config.Kind {
	return k.Rule("required", keys).Then(func(f *jsonc.File, n jsonc.Node) { require(f, n, keys...) })
}

// require reports members that an object must have.
func require(f *jsonc.File, n jsonc.Node, keys ...string) {
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
		f.Fail(n.Missing(key), "required%s", hint)
	}
}
