package config

import (
	"errors"
	"reflect"
)

// SharesSession reports whether an upstream can keep its session when next replaces its
// config: they differ at most in the description, the filters and the time limits.
func (u *Upstream) SharesSession(next *Upstream) bool {
	return reflect.DeepEqual(u.sessionSettings(), next.sessionSettings())
}

// sessionSettings returns the settings that a session depends on.
func (u *Upstream) sessionSettings() Upstream {
	s := *u
	s.Description, s.Tools = "", Filter{}
	s.StartupTimeout, s.Timeout, s.MaxTimeout, s.IdleStop = 0, 0, 0, 0
	s.written, s.redactor, s.Err = nil, nil, nil
	if u.Err != nil {
		s.Err = errors.New(u.Err.Error()) // its text decides
	}
	return s
}
