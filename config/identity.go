package config

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"mcpx/internal/redact"
)

// KeepsSession reports whether the upstream can keep its session when next becomes
// its config. It can if only the description, the filters, the approval or the time limits
// differ. The values must also be written in the same way: a value from a reference is a
// secret. Nothing else counts; for example, it does not matter which files exist.
func (u *Upstream) KeepsSession(next *Upstream) bool {
	return reflect.DeepEqual(u.sessionSettings(), next.sessionSettings()) &&
		reflect.DeepEqual(u.AsWritten().sessionSettings(), next.AsWritten().sessionSettings())
}

// AsWritten returns the upstream as it is in the file, with its references.
func (u *Upstream) AsWritten() *Upstream {
	if u.written == nil {
		return u
	}
	return u.written
}

// sessionSettings returns the settings that an upstream session depends on.
func (u *Upstream) sessionSettings() Upstream {
	s := *u
	s.Description, s.Tools, s.Parts = "", Filter{}, nil
	s.StartupTimeout, s.Timeout, s.MaxTimeout, s.IdleStop = 0, 0, 0, 0
	s.written, s.secrets, s.environment, s.Err = nil, nil, environment{}, nil
	if u.Err != nil {
		s.Err = errors.New(u.Err.Error()) // its text decides
	}
	return s
}

// KeepHiding makes Redact hide the secrets of another config of the same upstream, too:
// the upstream session that goes on may print them.
func (u *Upstream) KeepHiding(old *Upstream) {
	if u.secrets != nil && old.secrets != nil {
		u.secrets.AddSet(old.secrets)
	}
}

// CacheKey returns a hash of the values that decide which server this is, and a version.
// Values of env and headers that come from references or look secret do not count: a
// rotated token is the same server. Nothing of auth counts: the lists of one server do not
// depend on the app that mcpx is registered as.
func (u *Upstream) CacheKey(version int) string {
	written := u.AsWritten()
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
		if strings.Contains(value, "${") || redact.IsSecretName(name) || redact.LooksLikeToken(value) {
			value = ""
		}
		plain[name] = value
	}
	return plain
}
