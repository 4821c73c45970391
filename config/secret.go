package config

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"mcpx/internal/redact"
	"mcpx/internal/reference"
)

// Redact replaces the upstream's secrets in the text by ***: the values of its env,
// headers, args and url, literal or expanded, and each of their lines. It also finds
// them escaped, as JSON, Go, Python, a shell or a URL writes them. Values that are too
// ordinary to be secrets stay. Stored secrets are known once Resolve has read them. It is
// safe for concurrent use.
func (u *Upstream) Redact(text string) string { return u.secrets.Redact(text) }

// secrets returns the texts that Redact hides for an upstream. values are the expanded
// references.
func secrets(u *Upstream, values []variable) []string {
	var h hider
	h.args(u.Args)
	h.url(u.URL)
	for _, words := range u.commands {
		h.args(words)
	}
	for _, found := range h.found {
		values = append(values, variable{"secret", found}) // for its lines
	}
	for name, value := range u.Headers {
		values = append(values, variable{name, value})
		if _, credentials, ok := strings.Cut(value, " "); ok { // Bearer …
			values = append(values, variable{name, credentials})
		}
	}
	for name, value := range u.Env {
		values = append(values, variable{name, value})
	}
	values = append(values, variable{"client_secret", u.Auth.ClientSecret}, variable{"private_key", u.Auth.PrivateKey})
	for _, v := range values {
		h.url(v.value)
		for _, text := range redact.WithLines(v.value) {
			if redact.IsSecretName(v.name) || !isPlain(text) {
				h.hide(text)
			}
		}
	}
	return h.found
}

// LiteralSecrets returns where the file has a likely secret as plain text instead of a
// reference, such as env.API_KEY or args[1].
func (u *Upstream) LiteralSecrets() (places []string) {
	u = u.AsWritten()
	add := func(key string, values map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			value := values[name]
			_, credentials, _ := strings.Cut(value, " ") // Bearer …
			isLikely := redact.IsSecretName(name) || redact.LooksLikeToken(value) || redact.LooksLikeToken(credentials)
			if isLikely && !redact.IsTrivial(value) && strings.Contains(mask(value), redact.Hidden) {
				places = append(places, key+"."+name)
			}
		}
	}
	add("env", u.Env)
	add("headers", u.Headers)
	for i, shown := range new(hider).args(u.Args) {
		if shown != u.Args[i] {
			places = append(places, fmt.Sprintf("args[%d]", i))
		}
	}
	if new(hider).url(u.URL) != u.URL {
		places = append(places, "url")
	}
	add("auth", map[string]string{"client_secret": u.Auth.ClientSecret, "private_key": u.Auth.PrivateKey})
	return places
}

// hider masks secrets in arguments and URLs, and collects them.
type hider struct{ found []string }

// hide returns the mask for a secret.
func (h *hider) hide(secret string) string {
	h.found = append(h.found, secret)
	if decoded, err := url.QueryUnescape(secret); err == nil && decoded != secret {
		h.found = append(h.found, decoded)
	}
	return mask(secret)
}

func (h *hider) args(args []string) []string {
	shown := make([]string, len(args))
	for i, arg := range args {
		if i > 0 && isSecretFlag(args[i-1]) && !strings.HasPrefix(arg, "-") {
			shown[i] = h.hide(arg)
			continue
		}
		shown[i] = h.arg(arg)
	}
	return shown
}

// isSecretFlag reports whether the argument after this one is a secret.
func isSecretFlag(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && redact.IsSecretName(arg)
}

var (
	assignment = regexp.MustCompile(`(?s)^(-{0,2}[\w.-]+(?:=|:\s*))(.+)$`) // --key=v, KEY=v, Header: v
	jsonMember = regexp.MustCompile(`("([^"]+)"\s*:\s*")([^"]+)"`)
	address    = regexp.MustCompile(`^[A-Za-z][\w+.-]*://`)
	userInfo   = regexp.MustCompile(`://([^/?#]*)@`)
)

func (h *hider) arg(arg string) string {
	if redact.LooksLikeToken(arg) {
		return h.hide(arg)
	}
	if address.MatchString(arg) {
		return h.url(arg)
	}
	if m := assignment.FindStringSubmatch(arg); m != nil && redact.IsSecretName(m[1]) {
		return m[1] + h.hide(m[2])
	} else if m != nil {
		return m[1] + h.arg(m[2])
	}
	return jsonMember.ReplaceAllStringFunc(arg, func(text string) string {
		m := jsonMember.FindStringSubmatch(text)
		if redact.IsSecretName(m[2]) {
			return m[1] + h.hide(m[3]) + `"`
		}
		return text
	})
}

// url masks the user info, likely secrets in the query and tokens in the path. It works
// on the text, because a URL with references is not valid.
func (h *hider) url(text string) string {
	if !address.MatchString(text) {
		return text
	}
	text = userInfo.ReplaceAllStringFunc(text, func(m string) string {
		user := m[len("://") : len(m)-len("@")]
		if _, password, ok := strings.Cut(user, ":"); ok {
			h.hide(password)
		}
		return "://" + h.hide(user) + "@"
	})
	base, query, hasQuery := strings.Cut(text, "?")
	segments := strings.Split(base, "/")
	for i, s := range segments {
		if redact.LooksLikeToken(s) {
			segments[i] = h.hide(s)
		}
	}
	base = strings.Join(segments, "/")
	if !hasQuery {
		return base
	}
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		if value != "" && (redact.IsSecretName(name) || redact.LooksLikeToken(value)) {
			parameters[i] = name + "=" + h.hide(value)
		}
	}
	return base + "?" + strings.Join(parameters, "&")
}

var schemeWord = regexp.MustCompile(`^(Bearer|Basic|Token) $`)

// mask hides a text except for its references.
func mask(text string) string {
	masked, err := reference.Map(text, func(p reference.Part) string {
		switch {
		case p.Name == "" && !p.IsForeign && !schemeWord.MatchString(p.Text):
			return redact.Hidden
		case !redact.IsTrivial(p.Fallback):
			return withoutFallback(p)
		}
		return p.Text
	})
	if err != nil {
		return redact.Hidden
	}
	return masked
}

// maskFallbacks hides likely secrets in the defaults of references.
func maskFallbacks(text string) string {
	masked, err := reference.Map(text, func(p reference.Part) string {
		if redact.LooksLikeToken(p.Fallback) || redact.IsSecretName(p.Name) && !redact.IsTrivial(p.Fallback) {
			return withoutFallback(p)
		}
		return p.Text
	})
	if err != nil {
		return text
	}
	return masked
}

// withoutFallback returns a reference with its default hidden.
func withoutFallback(p reference.Part) string { return "${" + p.Name + ":-" + redact.Hidden + "}" }

var (
	words   = regexp.MustCompile(`^[A-Za-z]+([ _./-][A-Za-z]+)*$`)
	figures = regexp.MustCompile(`^[0-9.:-]{1,12}$`)
)

// isPlain reports whether a value is not a secret unless its name says so: a few words,
// a number, or a URL, whose secret parts are found separately.
func isPlain(value string) bool {
	return words.MatchString(value) && len(value) <= 24 || figures.MatchString(value) || address.MatchString(value)
}
