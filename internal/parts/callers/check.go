package callers

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"mcpx/config"
	"mcpx/internal/jsonc"
	"mcpx/internal/policy"
)

// Check reports what does not fit together in server.auth, or does not fit the servers. It is a
// config.Check.
func Check(c *config.Config, f *jsonc.File, root jsonc.Node) {
	server, _ := root.Member("server")
	auth, _ := server.Value.Member("auth")
	settings := Section.Of(c.Server.Parts)
	warnUnmatched(f, auth.Value, c.Profiles)
	listed, _ := auth.Value.Member("tokens")
	checkTokens(f, listed.Value.Elements(), settings.Tokens, c.Server.Token)
	provider, ok := auth.Value.Member("oidc")
	if !ok || provider.Value.Kind() != '{' {
		return
	}
	if o := settings.OIDC; o.Issuer != "" {
		if c.Server.PublicURL == "" && len(o.Audience) == 0 {
			f.Fail(provider.Name, `needs audience, or "server": {"public_url": "https://mcpx.example.com"}, the address that clients use`)
		}
		if len(o.Scopes) == 0 && len(o.Claims) == 0 {
			f.Fail(provider.Name, `needs scopes or claims, or its tokens grant nothing; write "scopes": {"mcp": ["*"]}`)
		}
	}
	require(f, provider.Value, "issuer")
}

// checkTokens reports tokens that another one has too.
func checkTokens(f *jsonc.File, elements []jsonc.Node, tokens []Token, serverToken string) {
	fewest := min(len(elements), len(tokens)) // they differ if there are two lists, which is reported elsewhere
	owners := map[string]string{serverToken: "server.token, which may do everything"}
	for i, t := range tokens[:fewest] {
		if owner := owners[t.Token]; owner != "" && t.Token != "" {
			f.Fail(elements[i], "has the same token as %s; give it its own", owner)
		}
		owners[t.Token] = cmp.Or(owners[t.Token], strconv.Quote(t.Name))
	}
}

// warnUnmatched warns about rules that match nothing in the config, such as a server's name
// without its profile.
func warnUnmatched(f *jsonc.File, auth jsonc.Node, profiles []config.Profile) {
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
			warnRule(f, rule, profiles)
		}
	}
}

// warnRule warns about a rule that matches no profile, or no server of its profiles.
func warnRule(f *jsonc.File, n jsonc.Node, profiles []config.Profile) {
	if n.Kind() != '"' || checkRule(n.Text()) != nil {
		return // reported elsewhere
	}
	text := n.Text()
	rules := union([]Grant{{Allow: []string{text}}})
	all := make([]string, len(profiles))
	for i, p := range profiles {
		all[i] = p.Name
	}
	chosen := slices.DeleteFunc(slices.Clone(profiles), func(p config.Profile) bool { return !rules.HasProfile(p.Name) })
	if len(chosen) == 0 {
		f.Warn(n, "%q grants nothing: its first part matches no profile; profiles: %s", text, strings.Join(all, ", "))
		return
	}
	var servers []string
	for _, p := range chosen {
		isGranted := func(u config.Upstream) bool { return rules.Extent(p.Name, u.Name) != policy.Nothing }
		if !strings.Contains(text, "/") || slices.ContainsFunc(p.All(), isGranted) {
			return
		}
		for _, u := range p.All() {
			servers = append(servers, u.Name)
		}
	}
	f.Warn(n, "%q grants nothing: its second part matches no server; servers: %s", text, cmp.Or(strings.Join(servers, ", "), "none"))
}
