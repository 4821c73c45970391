package validate

// translate rewrites what older drafts, and schemas that declare none, say in
// another way.
func (r *reducer) translate(in, out map[string]any, widened map[string]bool) {
	for limit, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		on, isBool := in[exclusive].(bool) // as in draft 4
		if !isBool || out[limit] == nil {
			continue
		}
		delete(widened, exclusive)
		if on {
			out[exclusive] = out[limit]
			delete(out, limit)
		}
	}
	if re := out["pattern"]; re != nil && re != in["pattern"] {
		out["$comment"] = in["pattern"] // to be shown
	}
	list, isList := out["items"].([]any)
	if r.draft <= 7 {
		if !isList {
			delete(out, "additionalItems") // without effect
		}
		return
	}
	if isList { // prefixItems up to 2019-09
		delete(out, "items")
		out["prefixItems"] = list
		if rest, ok := out["additionalItems"]; ok {
			out["items"] = rest
		}
	}
	delete(out, "additionalItems")
}

// relax undoes the harm of widening: under these keywords a schema that accepts
// more makes the whole accept less.
func relax(in, out map[string]any, widened map[string]bool) {
	if widened["not"] {
		delete(out, "not")
	}
	if widened["if"] {
		delete(out, "if")
		delete(out, "then")
		delete(out, "else")
	}
	if widened["contains"] {
		delete(out, "maxContains")
	}
	if widened["oneOf"] && out["oneOf"] != nil {
		all, _ := out["allOf"].([]any)
		out["allOf"] = append(all, map[string]any{"anyOf": out["oneOf"]})
		delete(out, "oneOf")
	}
	for named, rest := range map[string]string{
		"properties":        "additionalProperties",
		"patternProperties": "additionalProperties",
		"prefixItems":       "items",
	} {
		if widened[named] && size(out[named]) < size(in[named]) {
			delete(out, rest) // what is not named is no longer known
		}
	}
	if len(widened) > 0 {
		delete(out, "unevaluatedProperties")
		delete(out, "unevaluatedItems")
	}
}

// size is the number of schemas in a keyword's value; one if it holds none but
// is not null.
func size(v any) int {
	switch v := v.(type) {
	case nil:
		return 0
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return 1
}
