package config

// Schema returns the JSON Schema (2020-12) of the config file, for editors.
// Keys it does not know are allowed: client configs carry keys of their own.
func Schema() []byte {
	profile, upstream := defaultProfile(""), defaultUpstream()
	file := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "mcpx config"},
	}
	file = append(file, describe(defaults().fields(&profile))...)
	return indent(append(file,
		requireOne(append([]string{"schemas"}, serverKeys...)),
		pair{"$defs", object{
			{"name", anyNameRule},
			{"serverName", serverNameRule},
			{"schema", append(describe(profile.fields()), requireOne(serverKeys))},
			{"server", append(describe(upstream.fields()), requireOne([]string{"command", "url"}))},
		}},
	))
}

func describe(fields []field) object {
	properties := object{}
	for _, f := range fields {
		property := append(object{{"description", f.doc}}, f.kind.schema...)
		value := f.kind.show()
		if _, nested := value.(object); value != nil && !nested {
			property = append(property, pair{"default", value})
		}
		properties = append(properties, pair{f.name, property})
	}
	return object{{"type", "object"}, {"properties", properties}}
}

// requireOne is the rule that exactly one of the keys is there.
func requireOne(keys []string) pair {
	var rules []object
	for _, key := range keys {
		rules = append(rules, object{{"required", []string{key}}})
	}
	return pair{"oneOf", rules}
}

// What checks refuse, in the words of JSON Schema. No pattern looks ahead, since
// not every engine can.
var (
	notEmpty = pair{"minLength", 1}
	// webAddress is an absolute http or https url, or one that has references.
	webAddress = pair{"pattern", `^[hH][tT][tT][pP][sS]?://[^/?#]|\$\{`}

	anyName     = pair{"$ref", "#/$defs/name"}
	serverName  = pair{"$ref", "#/$defs/serverName"}
	anyNameRule = object{
		{"maxLength", 64},
		{"pattern", `^[\p{L}\p{M}\p{Nd}_.-]([\p{L}\p{M}\p{Nd} _.-]*[\p{L}\p{M}\p{Nd}_.-])?$`},
		{"not", object{{"pattern", "__"}}},
	}
	serverNameRule = object{anyName, {"not", object{{"const", "mcpx"}}}}
)
