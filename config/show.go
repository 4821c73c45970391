package config

import (
	"bytes"
	"encoding/json"
)

// Show returns the config as mcpx understood it: JSON in the shape with
// schemas, every default written out, disabled upstreams included, secrets
// hidden. References are shown as written.
func (c *Config) Show() []byte {
	shown := *c
	if shown.Server.Token != "" {
		shown.Server.Token = Hidden
	}
	return indent(show(append([]field{shown.schemas()}, shown.sections()...)))
}

func show(fields []field) object {
	var o object
	for _, f := range fields {
		if value := f.kind.show(); value != nil {
			o = append(o, pair{f.name, value})
		}
	}
	return o
}

func showProfiles(profiles []Profile) any {
	o := object{}
	for _, p := range profiles {
		if p.all == nil { // made by hand, not read
			p.all = p.Upstreams
		}
		o = append(o, pair{p.Name, show(p.fields())})
	}
	return o
}

func showUpstreams(upstreams []Upstream) any {
	o := object{}
	for _, u := range upstreams {
		u = u.Public()
		o = append(o, pair{u.Name, show(u.fields())})
	}
	return o
}

// Public returns the upstream as it may be shown: as it was written, its
// references not expanded, its secrets hidden.
func (u Upstream) Public() Upstream {
	if u.written != nil {
		u = *u.written
	}
	var h hider
	u.Command = maskFallbacks(u.Command)
	u.Dir = maskFallbacks(u.Dir)
	u.URL = maskFallbacks(h.url(u.URL))
	u.Args = h.args(u.Args)
	for i, arg := range u.Args {
		u.Args[i] = maskFallbacks(arg)
	}
	u.Env = maskValues(u.Env)
	u.Headers = maskValues(u.Headers)
	return u
}

func maskValues(values map[string]string) map[string]string {
	masked := make(map[string]string, len(values))
	for name, value := range values {
		masked[name] = mask(value)
	}
	return masked
}

// object is a JSON object that keeps the order of its members.
type object []pair

type pair struct {
	key   string
	value any
}

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(p.key))
		b.WriteByte(':')
		b.Write(encode(p.value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode leaves <, > and & readable. Nothing that is shown can fail to encode.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}

func indent(v any) []byte {
	var b bytes.Buffer
	_ = json.Indent(&b, encode(v), "", "  ")
	b.WriteByte('\n')
	return b.Bytes()
}
