package config

import (
	"errors"
	"reflect"
)

// KeepsSession reports whether the upstream can keep its session when next becomes its
// config. It can if only the description, the filters or the time limits differ.
func (u *Upstream) KeepsSession(next *Upstream) bool {
	return reflect.DeepEqual(u.sessionSettings(), next.sessionSettings())
}

// sessionSettings returns the settings that a session depends on. The redactor is one: two
// entries with the same values may differ in which of them are secrets.
func (u *Upstream) sessionSettings() Upstream {
	s := *u
	s.Description, s.Tools = "", Filter{}
	s.StartupTimeout, s.Timeout, s.MaxTimeout, s.IdleStop = 0, 0, 0, 0
	s.written, s.Err = nil, nil
	if u.Err != nil {
		s.Err = errors.New(u.Err.Error()) // its text decides
	}
	return s
}
