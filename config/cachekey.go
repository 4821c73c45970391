package config

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// CacheKey returns a hash of the values that decide which server this is, and a version.
// Values of env and headers that come from references or look secret do not count: a
// rotated token is the same server. Nothing of auth counts: the lists of one server do not
// depend on the app that mcpx is registered as.
func (u *Upstream) CacheKey(version int) string {
	written := u.written
	if written == nil {
		written = u
	}
	identity, _ := json.Marshal([]any{ // cannot fail: strings and maps of them
		version, u.Transport, u.Command, u.Args, u.Dir, u.URL, u.InheritAll, plainValues(written.Env), plainValues(written.Headers),
	})
	sum := sha256.Sum256(identity)
	return fmt.Sprintf("%x", sum[:16])
}

// plainValues returns the values without those that are references or look secret.
func plainValues(values map[string]string) map[string]string {
	plain := map[string]string{}
	for name, value := range values {
		if strings.Contains(value, "${") || secretName(name) || looksLikeToken(value) {
			value = ""
		}
		plain[name] = value
	}
	return plain
}
