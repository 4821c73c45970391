package config

import (
	"errors"
	"reflect"
)

// KeepsSession reports whether the upstream can keep its session when next becomes its
// config. It can if only the description, the filters, the approval or the time limits
// differ.
func (u *Upstream) KeepsSession(next *Upstream) bool {
	return reflect.DeepEqual(u.sessionSettings(), next.sessionSettings())
}

// sessionSettings returns the settings that a session depends on. The secrets are one: two
// entries with the same values may differ in which of them are secrets.
func (u *Upstream) sessionSettings() Upstream {
	s := *u
	s.Description, s.Tools, s.Pin, s.Trust = "", Filter{}, "", Trust{}
	s.StartupTimeout, s.Timeout, s.MaxTimeout, s.IdleStop = 0, 0, 0, 0
	s.written, s.secrets, s.environment, s.Err = nil, nil, environment{}, nil
	if u.secrets != nil {
		s.secrets = &secretSet{fixed: u.secrets.fixed}
	}
	if u.Err != nil {
		s.Err = errors.New(u.Err.Error()) // its text decides
	}
	return s
}

// KeepHiding makes Redact hide the secrets of another config of the same upstream, too:
// the session that goes on may print them.
func (u *Upstream) KeepHiding(old *Upstream) {
	if u.secrets != nil && old.secrets != nil {
		for _, secrets := range old.secrets.all() {
			u.secrets.add(secrets)
		}
	}
}
