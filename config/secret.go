package config

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// secrets returns the texts that Redact hides for an upstream. values are the expanded
// references.
func secrets(u *Upstream, values []variable) []string {
	var h hider
	h.args(u.Args)
	h.url(u.URL)
	for _, commands := range []map[string][]string{u.envCommands, u.headerCommands} {
		for _, words := range commands {
			h.args(words)
		}
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
		for _, text := range withLines(v.value) {
			if secretName(v.name) || !isPlain(text) {
				h.hide(text)
			}
		}
	}
	found := slices.DeleteFunc(h.found, isTrivial)
	for _, secret := range found {
		if strings.Contains(secret, " ") { // in a query
			found = append(found, strings.ReplaceAll(secret, " ", "+"))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// LiteralSecrets returns where the file has a likely secret as plain text instead of a
// reference, such as env.API_KEY or args[1].
func (u *Upstream) LiteralSecrets() (places []string) {
	if u.written != nil {
		u = u.written
	}
	add := func(key string, values map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			value := values[name]
			_, credentials, _ := strings.Cut(value, " ") // Bearer …
			isLikely := secretName(name) || looksLikeToken(value) || looksLikeToken(credentials)
			if isLikely && !isTrivial(value) && strings.Contains(mask(value), Hidden) {
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

// withLines returns a value and each of its lines, because programs print them
// separately. Line breaks may be written as \n.
func withLines(value string) []string {
	texts := []string{value}
	if isTrivial(value) {
		return texts
	}
	for _, text := range []string{value, backslashes.decode(value)} {
		texts = append(texts, text, strings.TrimSpace(text))
		for line := range strings.Lines(text) {
			if line != text && strings.ContainsFunc(line, isLetterOrDigit) { // not a separator line
				texts = append(texts, strings.TrimSpace(line))
			}
		}
	}
	return texts
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

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
	return strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && secretName(arg)
}

var (
	assignment = regexp.MustCompile(`(?s)^(-{0,2}[\w.-]+(?:=|:\s*))(.+)$`) // --key=v, KEY=v, Header: v
	jsonMember = regexp.MustCompile(`("([^"]+)"\s*:\s*")([^"]+)"`)
	address    = regexp.MustCompile(`^[A-Za-z][\w+.-]*://`)
	userInfo   = regexp.MustCompile(`://([^/?#]*)@`)
)

func (h *hider) arg(arg string) string {
	if looksLikeToken(arg) {
		return h.hide(arg)
	}
	if address.MatchString(arg) {
		return h.url(arg)
	}
	if m := assignment.FindStringSubmatch(arg); m != nil && secretName(m[1]) {
		return m[1] + h.hide(m[2])
	} else if m != nil {
		return m[1] + h.arg(m[2])
	}
	return jsonMember.ReplaceAllStringFunc(arg, func(text string) string {
		m := jsonMember.FindStringSubmatch(text)
		if secretName(m[2]) {
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
		if looksLikeToken(s) {
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
		if value != "" && (secretName(name) || looksLikeToken(value)) {
			parameters[i] = name + "=" + h.hide(value)
		}
	}
	return base + "?" + strings.Join(parameters, "&")
}

var schemeWord = regexp.MustCompile(`^(Bearer|Basic|Token) $`)

// mask hides a text except for its references.
func mask(text string) string {
	masked, err := mapParts(text, func(p part) string {
		switch {
		case p.name == "" && !p.foreign && !schemeWord.MatchString(p.text):
			return Hidden
		case !isTrivial(p.fallback):
			return p.withoutFallback()
		}
		return p.text
	})
	if err != nil {
		return Hidden
	}
	return masked
}

// maskFallbacks hides likely secrets in the defaults of references.
func maskFallbacks(text string) string {
	masked, err := mapParts(text, func(p part) string {
		if looksLikeToken(p.fallback) || secretName(p.name) && !isTrivial(p.fallback) {
			return p.withoutFallback()
		}
		return p.text
	})
	if err != nil {
		return text
	}
	return masked
}

func (p part) withoutFallback() string { return "${" + p.name + ":-" + Hidden + "}" }

var secretWords = []string{"key", "token", "secret", "pass", "pwd", "auth", "credential", "cookie"}

// secretName reports whether a value with this name is likely a secret.
func secretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

var (
	tokenPrefix = regexp.MustCompile(`^(sk-|gh[a-z]_|github_pat_|glpat-|xox|AKIA|eyJ)\S{6,}$`)
	tokenText   = regexp.MustCompile(`^[A-Za-z0-9]{20,}$`)
)

// looksLikeToken reports whether a text is likely a secret, whatever its name is.
func looksLikeToken(text string) bool {
	return tokenPrefix.MatchString(text) ||
		tokenText.MatchString(text) && strings.ContainsAny(text, "0123456789") && strings.Trim(text, "0123456789") != ""
}

var ordinary = []string{
	"production", "development", "staging", "testing", "default", "enabled", "disabled",
	"warning", "verbose", "latest", "localhost", "bearer", "oauth2",
}

// shortest is the length of the shortest secret, in bytes.
const shortest = 6

// isTrivial reports whether hiding a value would only remove ordinary text: the value is
// short, a common word, or a path that exists.
func isTrivial(value string) bool {
	if len(value) < shortest || slices.Contains(ordinary, strings.ToLower(value)) {
		return true
	}
	for _, path := range filepath.SplitList(value) {
		if !filepath.IsAbs(path) {
			return false
		}
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	return true
}

var (
	words   = regexp.MustCompile(`^[A-Za-z]+([ _./-][A-Za-z]+)*$`)
	figures = regexp.MustCompile(`^[0-9.:-]{1,12}$`)
)

// isPlain reports whether a value is not a secret unless its name says so: a few words,
// a number, or a URL, whose secret parts are found separately.
func isPlain(value string) bool {
	return words.MatchString(value) && len(value) <= 24 || figures.MatchString(value) || address.MatchString(value)
}
