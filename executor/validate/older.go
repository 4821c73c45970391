package validate

import "maps"

// older writes a reduced schema in the words of draft 7, which is what
// gojsonschema knows, so that it accepts exactly the same. ok is false if draft
// 7 has no words for it.
func older(schema any) (_ any, ok bool) {
	in, isObject := schema.(map[string]any)
	if !isObject {
		return schema, true
	}
	out := map[string]any{}
	for name, value := range in {
		k := keywords[name]
		switch name {
		case "unevaluatedProperties", "unevaluatedItems", "minContains", "maxContains":
			return nil, false
		case "$defs":
			k.shape = schemaMap
		}
		if out[name], ok = olderValue(k.shape, value); !ok {
			return nil, false
		}
	}
	if head, ok := out["prefixItems"]; ok {
		rest, closed := out["items"]
		out["items"] = head
		if closed {
			out["additionalItems"] = rest
		}
		delete(out, "prefixItems")
	}
	var also []any // what one schema of draft 7 cannot hold beside the rest
	for _, name := range []string{"dependentRequired", "dependentSchemas"} {
		if dependencies, ok := out[name]; ok {
			also = append(also, map[string]any{"dependencies": dependencies})
			delete(out, name)
		}
	}
	if ref, ok := out["$ref"]; ok && len(out) > 1 { // it would hide all others
		also = append(also, map[string]any{"$ref": ref})
		delete(out, "$ref")
	}
	if len(also) > 0 {
		all, _ := out["allOf"].([]any)
		out["allOf"] = append(all, also...)
	}
	return out, true
}

// olderValue does the same for the schemas in a keyword's value.
func olderValue(s shape, value any) (_ any, ok bool) {
	switch s {
	case oneSchema, schemaOrList, schemaList:
		list, isList := value.([]any)
		if !isList {
			return older(value)
		}
		out := make([]any, len(list))
		for i, schema := range list {
			if out[i], ok = older(schema); !ok {
				return nil, false
			}
		}
		return out, true
	case schemaMap, patternMap, dependentMap:
		in, _ := value.(map[string]any)
		out := maps.Clone(in)
		for key, schema := range in {
			if out[key], ok = older(schema); !ok {
				return nil, false
			}
		}
		return out, true
	}
	return value, true
}
