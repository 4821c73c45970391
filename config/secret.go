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

// secrets collects what Redact hides of an upstream; values are what its
// references stood for.
func secrets(u *Upstream, values []variable) []string {
	var h hider
	h.args(u.Args)
	h.url(u.URL)
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
	for _, v := range values {
		h.url(v.value)
		for _, text := range withLines(v.value) {
			if secretName(v.name) || !plain(text) {
				h.hide(text)
			}
		}
	}
	found := slices.DeleteFunc(h.found, trivial)
	for _, secret := range found {
		if strings.Contains(secret, " ") { // as a query has it
			found = append(found, strings.ReplaceAll(secret, " ", "+"))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// LiteralSecrets returns where the file has what looks like a secret of the upstream
// in plain text rather than as a reference, such as env.API_KEY or args[1].
func (u *Upstream) LiteralSecrets() (places []string) {
	if u.written != nil {
		u = u.written
	}
	for _, dict := range []struct {
		key    string
		values map[string]string
	}{{"env", u.Env}, {"headers", u.Headers}} {
		for _, name := range slices.Sorted(maps.Keys(dict.values)) {
			value := dict.values[name]
			_, credentials, _ := strings.Cut(value, " ") // Bearer …
			likely := secretName(name) || looksLikeToken(value) || looksLikeToken(credentials)
			if likely && !trivial(value) && strings.Contains(mask(value), Hidden) {
				places = append(places, dict.key+"."+name)
			}
		}
	}
	for i, shown := range new(hider).args(u.Args) {
		if shown != u.Args[i] {
			places = append(places, fmt.Sprintf("args[%d]", i))
		}
	}
	if new(hider).url(u.URL) != u.URL {
		places = append(places, "url")
	}
	return places
}

// withLines returns a value and what programs print of one that has several
// lines: each line, also if the line breaks are written as \n.
func withLines(value string) []string {
	texts := []string{value}
	if trivial(value) {
		return texts
	}
	for _, text := range []string{value, backslashes.decode(value)} {
		texts = append(texts, text, strings.TrimSpace(text))
		for line := range strings.Lines(text) {
			if line != text && strings.ContainsFunc(line, isLetterOrDigit) { // not a line that only separates others
				texts = append(texts, strings.TrimSpace(line))
			}
		}
	}
	return texts
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// hider replaces secrets in texts and keeps what it has found.
type hider struct{ found []string }

// hide returns what is shown instead of a secret.
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
		if i > 0 && secretFlag(args[i-1]) && !strings.HasPrefix(arg, "-") {
			shown[i] = h.hide(arg)
			continue
		}
		shown[i] = h.arg(arg)
	}
	return shown
}

// secretFlag reports whether the next argument is this one's value.
func secretFlag(arg string) bool {
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

// url hides the user info, the secret-looking parameters and the tokens in
// the path of a url. It works on the text, since references are no valid url.
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
	base, query, ok := strings.Cut(text, "?")
	segments := strings.Split(base, "/")
	for i, s := range segments {
		if looksLikeToken(s) {
			segments[i] = h.hide(s)
		}
	}
	base = strings.Join(segments, "/")
	if !ok {
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

// mask hides a text but for its references, which are no secrets.
func mask(text string) string {
	parts, err := split(text)
	if err != nil {
		return Hidden
	}
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.name == "" && !p.foreign && !schemeWord.MatchString(p.text):
			b.WriteString(Hidden)
		case !trivial(p.fallback):
			b.WriteString(p.withoutFallback())
		default:
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// maskFallbacks hides the defaults of references that look like secrets.
func maskFallbacks(text string) string {
	parts, err := split(text)
	if err != nil {
		return text
	}
	var b strings.Builder
	for _, p := range parts {
		if looksLikeToken(p.fallback) || secretName(p.name) && !trivial(p.fallback) {
			p.text = p.withoutFallback()
		}
		b.WriteString(p.text)
	}
	return b.String()
}

func (p part) withoutFallback() string { return "${" + p.name + ":-" + Hidden + "}" }

var secretWords = []string{"key", "token", "secret", "pass", "pwd", "auth", "credential", "cookie"}

// secretName reports whether what goes by this name is likely a secret.
func secretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

var (
	tokenPrefix = regexp.MustCompile(`^(sk-|gh[a-z]_|github_pat_|glpat-|xox|AKIA|eyJ)\S{6,}$`)
	tokenText   = regexp.MustCompile(`^[A-Za-z0-9]{20,}$`)
)

// looksLikeToken reports whether a text is likely a secret, whatever its name.
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

// trivial reports whether hiding a value would only blank out ordinary text:
// it is short, a common word, or a path that exists.
func trivial(value string) bool {
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

// plain reports whether a value is no secret unless its name says so: a few
// words, a number, a url whose secret parts are found by themselves.
func plain(value string) bool {
	return words.MatchString(value) && len(value) <= 24 || figures.MatchString(value) || address.MatchString(value)
}
