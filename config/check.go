package config

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcpx/internal/jsonc"
	"mcpx/internal/origin"
)

// check returns an error for a string that is not allowed. Users read the error.
type check func(string) error

// CheckName checks the name of an upstream.
func CheckName(name string) error {
	if name == "mcpx" {
		return errors.New(`"mcpx" is the built-in server; choose another name`)
	}
	return checkAnyName(name)
}

// MaxName is the most characters that a name may have.
const MaxName = 64

// checkAnyName checks the name of an upstream or a profile.
func checkAnyName(name string) error {
	switch {
	case name == "":
		return errors.New("a name must not be empty")
	case utf8.RuneCountInString(name) > MaxName:
		return fmt.Errorf("a name has at most %d characters, this one has %d", MaxName, utf8.RuneCountInString(name))
	case strings.TrimSpace(name) != name:
		return errors.New("a name must not start or end with a space")
	case strings.Contains(name, "__"):
		return errors.New(`a name must not contain "__", which separates server and tool in flat mode`)
	}
	for _, c := range name {
		if !isNameCharacter(c) {
			return fmt.Errorf(`a name holds letters, digits, "_", "-", "." and spaces, not %q`, c)
		}
	}
	return nil
}

func isNameCharacter(c rune) bool {
	return unicode.In(c, unicode.L, unicode.M, unicode.Nd) || strings.ContainsRune("_-. ", c)
}

// ValidName turns any text into a name for an upstream. A valid name stays as it is.
func ValidName(text string) string {
	name := strings.Map(func(c rune) rune {
		if isNameCharacter(c) {
			return c
		}
		return '-'
	}, text)
	for strings.Contains(name, "__") {
		name = strings.ReplaceAll(name, "__", "_")
	}
	if runes := []rune(strings.TrimSpace(name)); len(runes) > MaxName {
		name = string(runes[:MaxName])
	}
	name = strings.TrimSpace(name)
	if CheckName(name) != nil { // empty, or mcpx
		return strings.TrimSpace(name + " server")
	}
	return name
}

// CommandWords returns the first word of a command, and whether the words after it look
// like arguments. mcpx does not split a command like a shell does, and a path may have
// spaces.
func CommandWords(command string) (program string, more bool) {
	program, rest, more := strings.Cut(strings.TrimSpace(command), " ")
	if !more || strings.Contains(program, "${") {
		return program, false
	}
	return program, !strings.ContainsAny(program, `/\`) || strings.HasPrefix(strings.TrimSpace(rest), "-")
}

// NonEmpty refuses an empty text.
func NonEmpty(s string) error {
	if s == "" {
		return errors.New("must not be empty")
	}
	return nil
}

var errURL = errors.New(`expected an absolute http or https url, such as "https://example.com/mcp"`)

// webURL does not repeat the URL in its error: it may hold a secret.
func webURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return errURL
	}
	return nil
}

// errStore does not repeat the address, which may have a password.
var errStore = errors.New("not the address of a store; use redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, " +
	"?master_name=NAME for Sentinel, ?addr=HOST:PORT for further nodes of a cluster, ?prefix=NAME for the keys; " +
	"write special characters of a password as %XX")

// storeAddress checks the form of the store's address. [Hooks.CheckStore] checks all of it.
func storeAddress(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "redis" && u.Scheme != "rediss" {
		return errStore
	}
	return nil
}

// checkStore checks the store's address with the hook.
func (s *Server) checkStore(r *reader, n jsonc.Node) {
	if check := r.environment.CheckStore; check != nil && s.Store != "" && check(s.Store) != nil {
		r.Fail(n, "%v", errStore)
	}
}

// writtenURL checks a URL before expansion. With references, only the expanded URL is
// checked.
func writtenURL(s string) error {
	if strings.Contains(s, "${") {
		return nil
	}
	return webURL(s)
}

func environmentName(name string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return errors.New(`a variable's name must not be empty nor hold "="`)
	}
	return nil
}

func headerName(name string) error {
	for _, c := range name {
		if c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) {
			return fmt.Errorf("a header's name must not contain %q", c)
		}
	}
	if name == "" {
		return errors.New("a header's name must not be empty")
	}
	return nil
}

// allowedHost rejects a text that no Host header can match.
func allowedHost(s string) error {
	if _, ok := origin.ParseWrittenHost(s); !ok {
		return fmt.Errorf(`%q matches no host; write a name or an address, with a port or without, such as "mcpx.example.com"`, s)
	}
	return nil
}

// allowedOrigin rejects a text that no Origin header can match.
func allowedOrigin(s string) error {
	if _, ok := origin.ParseWritten(s); !ok {
		return fmt.Errorf(`%q matches no origin; write scheme and host without a path, such as "https://app.example.com"`, s)
	}
	return nil
}

// Glob checks a pattern of a [Filter].
func Glob(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
		return fmt.Errorf("invalid glob %q; * is any text, ? any character, [ab] one of these", pattern)
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
