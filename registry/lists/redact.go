package lists

import (
	"slices"

	"mcpx/internal/rawjson"
)

// Redact returns the definition of a tool, a prompt, a resource or a
// template as it is shown: redacted, except for the texts that a caller has to repeat
// and those that give a schema its structure.
func Redact(hide func(text string) string, definition []byte) []byte {
	if text := string(definition); hide(text) == text {
		return definition
	}
	return rawjson.Rewrite(definition, nil, func(path []string, text string) string {
		if isStructure(path) {
			return text
		}
		return hide(text)
	})
}

// structure are the members whose text stays. Property names stay too.
var structure = []string{
	"name", "uri", "uriTemplate", "mimeType",
	"type", "enum", "const", "pattern", "format", "required",
	"$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor",
}

// examples are the members that may hold any JSON. All text below them is redacted.
var examples = []string{"default", "examples", "_meta"}

// isStructure reports whether the text at that path of a definition stays.
func isStructure(path []string) bool {
	return len(path) > 0 && slices.Contains(structure, path[len(path)-1]) &&
		!slices.ContainsFunc(path, func(key string) bool { return slices.Contains(examples, key) })
}
