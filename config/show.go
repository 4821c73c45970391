package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"mcpx/internal/policy"
	"mcpx/internal/rawjson"
)

// Show returns the config as JSON in the shape with schemas. It includes defaults and
// disabled upstreams, keeps references as they are written and hides secrets.
func (c *Config) Show() []byte {
	c = cmp.Or(c.unchanged, c)
	return indent(show(append(c.profiles(), c.sections()...)))
}

// ShowTo is Show for a caller who may use only what the rules grant: it has the granted
// servers, and nothing about mcpx itself. Of a server whose tools are granted in part it
// has the description, and of no server the names of its tools.
func (c *Config) ShowTo(rules policy.Rules) []byte {
	if rules == nil {
		return c.Show()
	}
	profiles := object{}
	for _, p := range c.Profiles {
		if !rules.HasProfile(p.Name) {
			continue
		}
		servers := object{}
		for _, u := range p.all {
			if extent := rules.Extent(p.Name, u.Name); extent != policy.Nothing {
				servers = append(servers, pair{u.Name, u.showTo(extent == policy.Everything)})
			}
		}
		profiles = append(profiles, pair{p.Name, object{{"mcpServers", servers}}})
	}
	return indent(object{{ProfileKeys[0], profiles}})
}

func (u Upstream) showTo(isWhole bool) object {
	if !isWhole {
		return object{{"description", u.Description}}
	}
	u = u.Public()
	u.Tools = Filter{}
	return show(u.fields())
}

func show(fields []Field) object {
	var o object
	for _, f := range fields {
		if value := f.Kind.show(); !isEmpty(value) {
			o = append(o, pair{f.Name, value})
		}
	}
	return o
}

// isEmpty reports whether a key is left out: it has no value.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case []any:
		return v == nil
	case object:
		return v == nil
	}
	return value == nil
}

func showProfiles(profiles []Profile) any {
	o := object{}
	for _, p := range profiles {
		if p.all == nil { // not read from a file
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

// Public returns the upstream for display: as the file has it, with references not
// expanded and secrets hidden.
func (u Upstream) Public() Upstream {
	if u.written != nil {
		u = *u.written
	}
	u.Command = maskFallbacks(u.Command)
	u.Dir = maskFallbacks(u.Dir)
	u.URL = maskFallbacks(new(hider).url(u.URL))
	u.Args = maskWords(u.Args)
	u.Env = maskValues(u.Env)
	u.Headers = maskValues(u.Headers)
	u.Auth.ClientID = maskFallbacks(u.Auth.ClientID)
	u.Auth.ClientSecret = mask(u.Auth.ClientSecret)
	u.Auth.PrivateKey = mask(u.Auth.PrivateKey)
	u.commands = maps.Clone(u.commands)
	for place, words := range u.commands {
		u.commands[place] = maskWords(words)
	}
	return u
}

func maskWords(words []string) []string {
	masked := new(hider).args(words)
	for i, word := range masked {
		masked[i] = maskFallbacks(word)
	}
	return masked
}

func maskValues(values map[string]string) map[string]string {
	masked := make(map[string]string, len(values))
	for name, value := range values {
		masked[name] = mask(value)
	}
	return masked
}

// Schema returns the JSON Schema (2020-12) of the config file, for editors. It allows
// unknown keys, because client configs have keys of their own.
func (h Hooks) Schema() []byte {
	profile, upstream := h.defaultProfile(""), h.defaultUpstream()
	file := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "mcpx config"},
	}
	file = append(file, describe(h.defaults().fields(&profile))...)
	return indent(append(file,
		requireOne(slices.Concat(ProfileKeys, ServerKeys)),
		pair{"$defs", object{
			{"name", anyNameRule},
			{"serverName", serverNameRule},
			{"profile", append(describe(profile.fields()), requireOne(ServerKeys))},
			{"server", append(describe(upstream.fields()), requireOne([]string{"command", "url"}))},
		}},
	))
}

func describe(fields []Field) object {
	properties := object{}
	for _, f := range fields {
		property := append(object{{"description", f.Doc}}, f.Kind.schema...)
		value := f.Kind.show()
		if _, nested := value.(object); !isEmpty(value) && !nested {
			property = append(property, pair{"default", value})
		}
		properties = append(properties, pair{f.Name, property})
	}
	return object{{"type", "object"}, {"properties", properties}}
}

// requireOne returns the rule that an object has exactly one of the keys.
func requireOne(keys []string) pair {
	var rules []object
	for _, key := range keys {
		rules = append(rules, object{{"required", []string{key}}})
	}
	return pair{"oneOf", rules}
}

// Rules of JSON Schema that match the checks in check.go. Patterns have no lookahead,
// because not every engine supports it.
var (
	notEmpty = pair{"minLength", 1}
	// webAddress matches an absolute http or https URL, or one with references.
	webAddress = pair{"pattern", `^[hH][tT][tT][pP][sS]?://[^/?#]|\$\{`}
	// plainAddress matches an absolute http or https URL.
	plainAddress = pair{"pattern", `^[hH][tT][tT][pP][sS]?://[^/?#]`}

	anyName     = pair{"$ref", "#/$defs/name"}
	serverName  = pair{"$ref", "#/$defs/serverName"}
	anyNameRule = object{
		{"maxLength", 64},
		{"pattern", `^[\p{L}\p{M}\p{Nd}_.-]([\p{L}\p{M}\p{Nd} _.-]*[\p{L}\p{M}\p{Nd}_.-])?$`},
		{"not", object{{"pattern", "__"}}},
	}
	serverNameRule = object{anyName, {"not", object{{"const", "mcpx"}}}}
)

// object is a JSON object whose members are in order.
type object []pair

type pair struct {
	key   string
	value any
}

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte("{")
	for _, p := range o {
		b = rawjson.AppendMember(b, p.key, rawjson.Encode(p.value))
	}
	return append(b, '}'), nil
}

func indent(v any) []byte {
	var b bytes.Buffer
	_ = json.Indent(&b, rawjson.Encode(v), "", "  ")
	b.WriteByte('\n')
	return b.Bytes()
}
