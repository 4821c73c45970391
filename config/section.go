package config

import "slices"

// Place is an object of the file to which a part can add keys.
type Place int

// The places.
const (
	AtTop      Place = iota // the file itself
	InServer                // "server"
	InLogging               // "logging"
	InLimits                // "limits"
	InProfile               // each profile, or the file itself if it has no profiles
	InUpstream              // each server
	InTools                 // "tools" of each server
)

// Section is the keys that a part adds to one place. [NewSection] makes it.
type Section interface {
	at() Place
	newValues() any // the defaults, which fields binds
	fields(values any) []Field
}

// SectionOf is a Section whose values are a T.
type SectionOf[T any] struct {
	place    Place
	defaults T
	bind     func(values *T) []Field
}

// NewSection returns a Section. bind returns its keys, bound to the variables that get their
// values. What is in defaults must not be changed later.
func NewSection[T any](place Place, defaults T, bind func(values *T) []Field) *SectionOf[T] {
	return &SectionOf[T]{place, defaults, bind}
}

func (s *SectionOf[T]) at() Place { return s.place }

func (s *SectionOf[T]) newValues() any {
	values := s.defaults
	return &values
}

func (s *SectionOf[T]) fields(values any) []Field { return s.bind(values.(*T)) }

// Of returns the values that an object of the file has for this section: the defaults if the
// config was read without it.
func (s *SectionOf[T]) Of(v Values) T {
	for _, sv := range v {
		if sv.section == Section(s) {
			return *sv.values.(*T)
		}
	}
	return s.defaults
}

// Values are the values that one object of the file has for the keys of parts.
type Values []sectionValues

type sectionValues struct {
	section Section
	values  any // a pointer to the T of the section
}

// newValues returns the defaults of an object that is at these places.
func (h Hooks) newValues(places ...Place) Values {
	var v Values
	for _, s := range h.Sections {
		if slices.Contains(places, s.at()) {
			v = append(v, sectionValues{s, s.newValues()})
		}
	}
	return v
}

// fields returns the keys of parts at a place, bound to the values.
func (v Values) fields(at Place) []Field {
	var fields []Field
	for _, sv := range v {
		if sv.section.at() == at {
			fields = append(fields, sv.section.fields(sv.values)...)
		}
	}
	return fields
}

func (h Hooks) defaults() *Config {
	c := defaults()
	c.Parts, c.Server.Parts, c.Logging.Parts, c.Limits.Parts = h.newValues(AtTop), h.newValues(InServer), h.newValues(InLogging), h.newValues(InLimits)
	return c
}

func (h Hooks) defaultProfile(name string) Profile {
	p := defaultProfile(name)
	p.Parts = h.newValues(InProfile)
	return p
}

func (h Hooks) defaultUpstream() Upstream {
	u := defaultUpstream()
	u.Parts = h.newValues(InUpstream, InTools)
	return u
}
